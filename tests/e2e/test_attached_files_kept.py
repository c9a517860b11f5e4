"""What becomes of attached files once their run is announced: by its cleanup, and by whether they
are retained."""

import json
from collections.abc import Iterator

import pytest

from tests.support.servers.preparing_server import CONTENTS, Porter, asked, preparing, sight
from tests.support.servers.running_server import wait_for

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def retaining(one_porter: Porter) -> Iterator[Porter]:
    """A server that retains the files of sessions that are kept."""
    assert one_porter.config is not None
    as_it_was = one_porter.config.read_text("utf-8")
    one_porter.stop()
    one_porter.config.write_text(json.dumps(preparing(one_porter.folder, retain=True)), "utf-8")
    one_porter.alive()
    one_porter.places.clear()
    yield one_porter
    one_porter.stop()
    one_porter.config.write_text(as_it_was, "utf-8")


def announced(server: Porter, key: str, cleanup: str) -> str:
    """A run of mode `run` whose child has seen its files, and which is announced."""
    answer = server.spawn(**asked(key, cleanup=cleanup, mode="run"))
    assert answer.status_code == 201, answer.text
    run_id = str(answer.json()["runId"])
    assert server.run(run_id, "announced")["outcome"] == "success"
    assert server.seen(run_id) == sight(server, run_id)
    return run_id


def removed(server: Porter, run_id: str) -> None:
    """Its files are removed after it was announced, and its folder is left to its agent."""
    undone = wait_for("the files to be undone", lambda: server.recorded(run_id, "EffectAttempted"))
    assert [(one["name"], one["outcome"]) for one in undone] == [("attachments", "undone")]
    steps = server.steps(run_id)
    assert steps.index("undo:attachments:done") > steps.index("RunAnnounced")
    assert not (server.places.desk() / ".openclaw" / "attachments" / run_id).exists()
    assert server.places.desk().is_dir()


@pytest.mark.parametrize("cleanup", ["delete", "keep"])
def test_files_are_removed_when_their_run_is_announced(porter: Porter, cleanup: str) -> None:
    removed(porter, announced(porter, f"not retained: {cleanup}", cleanup))
    assert porter.places.left() == ["porter", "porter/desk"]


def test_each_task_of_a_batch_has_a_copy_of_its_own(porter: Porter) -> None:
    body = asked("batch", cleanup="keep", mode="run", thread=False)
    answer = porter.spawn(**{**body, "task": ["one", "two"], "parallel": True})
    assert answer.status_code == 201, answer.text
    runs = [str(one["runId"]) for one in answer.json()["runs"]]
    receipts = [one["attachments"] for one in answer.json()["runs"]]
    assert receipts[0]["files"] == receipts[1]["files"]
    assert receipts[0]["relDir"] != receipts[1]["relDir"]
    for run_id in runs:
        porter.run(run_id, "announced")
        assert porter.seen(run_id) == sight(porter, run_id)
        removed(porter, run_id)


def test_files_that_are_retained_stay_with_a_session_that_is_kept(retaining: Porter) -> None:
    kept = announced(retaining, "retained", "keep")
    # Others are removed after it, and so is what a start finds to be done.
    removed(retaining, announced(retaining, "retained, deleted", "delete"))
    retaining.stop()
    retaining.start()
    removed(retaining, announced(retaining, "retained, deleted again", "delete"))
    folder = retaining.places.desk() / ".openclaw" / "attachments" / kept
    files = {one.name: one.read_bytes() for one in folder.iterdir() if one.name in CONTENTS}
    assert files == CONTENTS
    assert "undo:attachments:done" not in retaining.steps(kept)
    assert retaining.run(kept)["stage"] == "announced"
