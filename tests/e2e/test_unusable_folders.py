"""Transcripts that cannot be written as files: the runs go on, and the log says what is wrong."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers.data_directories import copied, new_place
from tests.support.servers.server import Server
from tests.support.servers.stories import mortal_stories
from tests.support.waiting import wait_for

pytestmark = pytest.mark.kill


@pytest.fixture(scope="module")
def mortal(made_data_dir: Path) -> Iterator[Server]:
    with new_place() as place:
        data = copied(made_data_dir, place / "data")
        with Server(data, mortal_stories(place / "notes"), dies=True) as server:
            yield server


@pytest.mark.parametrize(
    ("agent_id", "outcome", "error"),
    [
        ("accountant", "success", None),
        ("failing", "error", "the harbour is closed"),
    ],
)
def test_a_run_ends_as_it_did_when_its_transcript_cannot_be_written(
    mortal: Server, agent_id: str, outcome: str, error: str | None
) -> None:
    place = mortal.data_dir / "transcripts" / agent_id
    assert not place.exists()
    place.parent.mkdir(mode=0o700, exist_ok=True)
    place.write_text("in the way", "utf-8")
    body: dict[str, Any] = {
        "requester": {"sessionKey": "agent:main:unwritten"},
        "cleanup": "delete",
    }
    try:
        run_id = mortal.accepted(agent_id, **body)
        run = mortal.run(run_id, "archived")
        text = (
            f"the transcript of run {run_id} cannot be written as a file now: a link or a file is"
            f" in the place of transcripts, transcripts/{agent_id} or a folder above it"
        )
        wait_for("the reason in the log", lambda: text in mortal.log())
    finally:
        place.unlink()
    assert run["outcome"] == outcome
    assert run["error"] == error or error in run["error"]
    said = mortal.http.get(f"/v1/runs/{run_id}/transcript").json()["items"]
    # The agent that fails writes to standard error alone.
    from_agent = [one for one in said[1:] if one["body"].get("source") != "stderr"]
    assert bool(from_agent) is (agent_id == "accountant")
    # It is tried again.
    wait_for("the file", Path(run["transcriptPath"]).exists)
