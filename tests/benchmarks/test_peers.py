"""The comparison with peers."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.peers import contenders
from benchmarks.peers.contenders import CONTENDERS, OWN, Lives
from benchmarks.peers.environments import PeerMissing
from benchmarks.peers.run import main
from benchmarks.peers.summary import peers_document, peers_table, summaries
from benchmarks.processor import PROCESSES, Spent
from benchmarks.report import Timing

PEER = CONTENDERS[1]


def rates(*found: float, cpu: Sequence[Spent | None] = (None,)) -> list[Lives]:
    each = (*cpu, *(None for _ in found))
    return [
        Lives(Timing(10, 1.0, figure, 1000 / figure, 9.0, 0.1), spent)
        for figure, spent in zip(found, each, strict=False)
    ]


ROUNDS = {
    (PEER, 8): rates(50.0, 40.0, 100.0, cpu=[Spent(7.0, 4.0), Spent(9.0, 1.0), Spent(5.0, 3.0)]),
    (OWN, 8): rates(90.0, 100.0, 400.0),
    (PEER, 1): rates(20.0),
}
CPU = ["7.00", "3.00"]


def test_a_contender_is_told_by_its_median_and_spawnlog_beside_it() -> None:
    alone, peer, own = summaries(ROUNDS)
    assert (peer.median, peer.best, peer.worst, peer.p50_ms) == (50.0, 100.0, 40.0, 20.0)
    assert (peer.ratio, own.ratio) == (2.0, None)
    # spawnlog was not measured with this number of callers.
    assert (alone.contender, alone.callers, alone.ratio) == (PEER, 1, None)


def test_the_table_and_the_document_say_the_same() -> None:
    found = summaries(ROUNDS)
    lines = peers_table(found).splitlines()
    assert lines[3].split() == ["dbos", "HTTP", "8", "50.0", "100.0", "40.0", "20.0", *CPU, "2.00"]
    assert lines[2].split()[-3:] == ["-", "-", "-"]
    made = json.loads(json.dumps(peers_document(found, ROUNDS, {"x": "why"}, {}, ["rule"])))
    assert made["contenders"][1]["rounds"] == [50.0, 40.0, 100.0]
    assert made["contenders"][1]["ratio"] == 2.0
    assert made["contenders"][1]["serverCpuMs"] == 7.0
    assert made["contenders"][1]["databaseCpuMs"] == 3.0
    assert made["contenders"][0]["serverCpuMs"] is None
    assert made["missing"] == {"x": "why"}


@pytest.mark.nightly
@pytest.mark.server
def test_contenders_live_and_one_that_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def installed(folder: Path, peer: str) -> Path:
        # The peer `eventsourcing` is also a dependency of this project, so it is installed.
        if peer == "eventsourcing":
            return Path(sys.executable)
        raise PeerMissing(f"{peer} cannot be installed: there is no such package")

    monkeypatch.setattr(contenders, "installed_python", installed)
    output = tmp_path / "peers.json"
    # The system counts processor time in hundredths of a second.
    size = ["--rounds", "1", "--seconds", "1", "--callers", "2", "--output", str(output)]
    assert main([*size, "--peers", "eventsourcing", "restate"]) == 1
    made = json.loads(output.read_text("utf-8"))
    measured = [
        (contender["contender"], contender["median"] > 0) for contender in made["contenders"]
    ]
    assert measured == [("spawnlog, HTTP", True), ("eventsourcing, in process", True)]
    if PROCESSES.is_dir():
        assert all(contender["serverCpuMs"] > 0 for contender in made["contenders"])
        assert all(contender["databaseCpuMs"] > 0 for contender in made["contenders"])
    assert made["missing"] == {
        "restate, HTTP": "restate cannot be installed: there is no such package"
    }
    assert "NOT MEASURED: restate, HTTP" in capsys.readouterr().err
