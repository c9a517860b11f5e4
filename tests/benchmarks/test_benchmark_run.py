"""The benchmark as a program, in a size that takes no time."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.run import main
from tests.support.process_table import carrying

ROOT = Path(__file__).resolve().parents[2]


def bench(folder: Path, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run it with nothing of this machine's settings; all that it leaves is left in the folder."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "TMPDIR": str(folder)}
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.run", *arguments],
        cwd=ROOT,
        env=environment | variables,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.mark.slow
def test_the_benchmark_measures_a_real_server_and_leaves_nothing(tmp_path: Path) -> None:
    output = tmp_path / "figures.json"
    size = ("--seconds", "0.3", "--callers", "2")
    # A database that is meant for another server is left alone.
    elsewhere = {"SPAWNLOG_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/elsewhere"}
    done = bench(tmp_path, *size, "--output", str(output), **elsewhere)
    assert done.returncode == 0, done.stderr
    figures = json.loads(output.read_text("utf-8"))
    kinds = {one["name"].partition(":")[0].split()[0] for one in figures["cells"]}
    assert kinds == {"floor", "spawns", "lives"}
    assert [one["callers"] for one in figures["cells"]] == [2, 2, 2]
    assert all(one["done"] >= one["callers"] for one in figures["cells"])
    assert all(0 < one["p50_ms"] <= one["p99_ms"] for one in figures["cells"])
    assert set(figures["machine"]) == {"cores", "memoryGiB", "system", "python", "postgresql"}
    assert str(tmp_path) not in output.read_text("utf-8")
    for one in figures["cells"]:
        assert one["name"] in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["figures.json"]
    assert carrying(str(tmp_path)) == []


@pytest.mark.parametrize(
    "arguments", [("--seconds", "0"), ("--seconds", "nan"), ("--callers", "0"), ("--callers", "x")]
)
def test_a_size_that_is_none_is_refused(
    arguments: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert arguments[0] in capsys.readouterr().err
