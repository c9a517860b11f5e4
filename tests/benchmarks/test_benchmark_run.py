"""The benchmark as a program, in a very small size."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.run import main
from benchmarks.time_travel import AS_OF, MOMENTS, WHOLE, moments_of
from benchmarks.what_if import QUESTIONS
from tests.support.servers.process_table import carrying

ROOT = Path(__file__).resolve().parents[2]
SECONDS_MAX = 200


def bench(folder: Path, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run the benchmark without settings of this machine; it writes only into the folder."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "TMPDIR": str(folder)}
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.run", *arguments],
        cwd=ROOT,
        env=environment | variables,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )


@pytest.mark.nightly
@pytest.mark.server
@pytest.mark.timeout(SECONDS_MAX + 20)
def test_the_benchmark_measures_real_servers_and_leaves_nothing(tmp_path: Path) -> None:
    output = tmp_path / "figures.json"
    size = ("--seconds", "0.2", "--callers", "2", "--history", "600", "--no-slowed")
    small = ("--time-travel", "0", "--idle-seconds", "0.2", "--memory-runs", "200")
    # The benchmark does not use the database of SPAWNLOG_DATABASE_URL.
    elsewhere = {"SPAWNLOG_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/elsewhere"}
    done = bench(tmp_path, *size, *small, "--output", str(output), **elsewhere)
    assert done.returncode == 0, done.stderr
    figures = json.loads(output.read_text("utf-8"))
    measured = [(cell["name"].split()[0], cell["processes"]) for cell in figures["cells"]]
    spawns = [("spawns", 1), ("spawns", 2)]
    both = [("appends", 1), ("appends", 2), *spawns, *spawns]
    assert measured == [*both, ("messages", 1), ("lives", 1)]
    assert {cell["commits"] for cell in figures["cells"]} == {"plain"}
    for item in figures["cells"]:
        assert item["name"] in done.stdout
        assert item["timing"]["done"] >= item["callers"] == 2
        assert (
            (item["floor"] is None) == (item["ratio"] is None) == item["name"].startswith("lives")
        )
        for timing in filter(None, (item["timing"], item["floor"])):
            assert 0 < timing["p50_ms"] <= timing["p99_ms"]
    result = {figure["name"]: figure["value"] for figure in figures["figures"]}
    notes = {figure["name"]: figure["note"] for figure in figures["figures"]}
    assert any(name.startswith("a spawn") for name in result)
    for name in ("idle, empty record: server", "lives, 32 callers, empty record: PostgreSQL"):
        assert result[name] >= 0
    for name in ("lives, 1 callers, long record", "lives, 32 callers, empty record"):
        assert result[name] > 0
    assert notes["lives, 32 callers"].startswith("long : empty")
    for name in ("generated", "tailed", "streamed over HTTP to one reader", "on disk: events"):
        assert result[name] > 0
    for name in ("rebuild, as a command", "verify, as a command"):
        assert result[name] or notes[name].startswith("no command: log")
    for name in ("process runs, 8 callers", "process runs, 32 callers: server"):
        assert result[name] > 0
    assert any(name.startswith("memory after ") for name in result)
    assert set(figures["machine"]) == {
        "cores",
        "memoryGiB",
        "system",
        "python",
        "embeddedPostgresql",
        "loadBefore",
    }
    assert str(tmp_path) not in output.read_text("utf-8")
    assert [path.name for path in tmp_path.iterdir()] == ["figures.json"]
    assert carrying(str(tmp_path)) == []


@pytest.mark.nightly
@pytest.mark.server
@pytest.mark.timeout(SECONDS_MAX + 20)
def test_a_long_record_is_looked_back_on_beside_a_short_one(tmp_path: Path) -> None:
    output = tmp_path / "figures.json"
    size = ("--seconds", "0.1", "--time-travel", "2000")
    done = bench(tmp_path, "--time-travel-only", *size, "--output", str(output))
    assert done.returncode == 0, done.stderr
    figures = {
        figure["name"]: figure for figure in json.loads(output.read_text("utf-8"))["figures"]
    }
    reads = [f"{name} as of the {moment}" for name in AS_OF for moment in MOMENTS]
    for name in (*reads, *WHOLE):
        assert figures[name]["value"] > 0
        assert " times" in figures[name]["note"]
    for name in QUESTIONS:
        assert figures[f"what-if, 2000 events: {name}"]["value"] > 0
    for name in ("export, as a command", "import, as a command"):
        assert figures[f"{name}, 2000 events"]["value"] > 0
    assert [path.name for path in tmp_path.iterdir()] == ["figures.json"]
    assert carrying(str(tmp_path)) == []


def test_moments_of_a_short_record_are_as_far_into_a_shift_as_those_of_a_long_one() -> None:
    assert moments_of(10_000) == {"beginning": 2_500, "middle": 5_000, "end": 7_500}
    assert moments_of(1_000_000) == {"beginning": 2_500, "middle": 505_000, "end": 987_500}


@pytest.mark.parametrize(
    "arguments",
    [
        ("--seconds", "0"),
        ("--processes", "3"),
        ("--time-travel", "7"),
        ("--time-travel-only", "--history-only"),
    ],
)
def test_a_size_that_is_none_is_refused(
    arguments: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert arguments[0] in capsys.readouterr().err
