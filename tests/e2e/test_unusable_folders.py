"""Transcripts that cannot be written or put away: the runs go on, and it is said what is wrong."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers.data_directories import copied, new_place
from tests.support.servers.mortal_server import Mortal
from tests.support.servers.running_server import wait_for

pytestmark = pytest.mark.kill

_ONE_BY_ONE = """
import runpy, sys
from application.workers import due
due.DUE_BATCH = 1
module, sys.argv[1:] = sys.argv[3], sys.argv[4:]
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""
"""The same program, which takes what is due one by one: one that fails is a whole batch of them."""


class OneByOne(Mortal):
    """Takes what is due one by one."""

    def __init__(self, data_dir: Path, folder: Path) -> None:
        super().__init__(data_dir, folder)
        self._prefix = (sys.executable, "-c", _ONE_BY_ONE)


@pytest.fixture(scope="module")
def mortal(made_data_dir: Path) -> Iterator[Mortal]:
    with new_place() as place:
        with OneByOne(copied(made_data_dir, place / "data"), place / "notes") as server:
            yield server


def files_of(server: Mortal, run_id: str, agent_id: str) -> list[Path]:
    """The files of a run's transcript."""
    session = server.run(run_id)["sessionId"]
    return list((server.data_dir / "transcripts" / agent_id).glob(f"{session}*"))


def test_an_archive_that_fails_holds_up_no_other_and_is_tried_again(mortal: Mortal) -> None:
    body: dict[str, Any] = {"requester": {"sessionKey": "agent:main:put-away"}, "cleanup": "delete"}
    mortal.is_to_die("before RunArchived")
    stuck = mortal.accepted("plain", **body)
    mortal.has_died()
    (moved,) = (mortal.data_dir / "transcripts" / "plain").glob("*.deleted.*")
    # It was renamed and that was not recorded; now the new name belongs to a folder.
    moved.rename(moved.with_name(moved.name.partition(".deleted.")[0]))
    moved.mkdir()
    before = len(mortal.log())
    mortal.start()

    def failures() -> int:
        return mortal.log()[before:].count(f"archive of run {stuck} failed")

    wait_for("the failure", lambda: failures() > 0)
    for _ in range(3):
        other = mortal.accepted("plain", **body)
        assert mortal.run(other, "archived")["stage"] == "archived"
    assert mortal.run(stuck)["stage"] == "announced"
    count = failures()
    wait_for("another attempt", lambda: failures() > count)
    # An attempt for each lease, not one after the other.
    assert failures() < 10
    moved.rmdir()
    assert mortal.run(stuck, "archived")["transcriptPath"] == str(moved)
    assert files_of(mortal, stuck, "plain") == [moved]


@pytest.mark.parametrize(
    ("agent_id", "outcome", "error"),
    [
        ("accountant", "success", None),
        ("failing", "error", "the harbour is closed"),
    ],
)
def test_a_run_ends_as_it_did_when_its_transcript_cannot_be_written(
    mortal: Mortal, agent_id: str, outcome: str, error: str | None
) -> None:
    place = mortal.data_dir / "transcripts" / agent_id
    assert not place.exists()
    place.write_text("in the way", "utf-8")
    body: dict[str, Any] = {
        "requester": {"sessionKey": "agent:main:unwritten"},
        "cleanup": "delete",
    }
    try:
        run_id = mortal.accepted(agent_id, **body)
        run = mortal.run(run_id, "archived")
    finally:
        place.unlink()
    assert run["outcome"] == outcome
    assert run["transcriptPath"] is None
    lines = run["error"].split("\n")
    assert lines[-1] == (
        "the transcript file cannot be written: a link or a file is in the place of transcripts,"
        f" transcripts/{agent_id} or a folder above it"
    )
    assert lines[0] != ""
    if error is None:
        assert len(lines) == 1
        assert run["resultText"] == "all of it"
    else:
        assert error in run["error"].removesuffix(lines[-1])
    # What it said is still there.
    said = mortal.http.get(f"/v1/runs/{run_id}/transcript").json()["items"]
    assert bool(said) is (agent_id == "accountant")
