"""What a run tells of its attachments: only what was written, and what has become of it."""

from typing import Any
from uuid import UUID

import pytest

from application.queries.views.run import (
    attachment_list,
    attachments_view,
    pending_undo_views,
)
from application.queries.views.view import View
from domain.context.attachment_manifest import file_list, relative_dir, render_file_list
from domain.context.attachments import AcceptedFiles, accept_file
from domain.run.events import RunEvent
from domain.run.facts import AttachmentsRequest
from domain.run.state import Run
from tests.support.builders.run_histories import (
    announced,
    claimed,
    created,
    ended,
    prepared,
    queued,
    refused,
    resolved,
    started,
    step_begun,
    step_taken,
    step_undone,
    undo_failed,
)
from tests.support.builders.storytelling import ref, requested, run_id, run_of

MANIFEST = ref("manifest")
FILES = file_list(AcceptedFiles((accept_file("a", b"xyz"),)))
TEXTS: dict[UUID, str] = {MANIFEST.id: render_file_list(FILES)}
SHORT = {"count": 1, "totalBytes": 3, "relDir": relative_dir(run_id(1))}
BEGUN = step_begun("attachments", root="/srv/work", relative=relative_dir(run_id(1)))
TAKEN = step_taken("attachments", outcome="written", manifest=MANIFEST, file_count=1, total_bytes=3)
LIVED = (created(), queued(), claimed(), started())
OVER = (*LIVED, ended(), announced())


def members(view: View | None) -> dict[str, Any]:
    assert view is not None
    return view.model_dump()


def with_files(*events: RunEvent) -> Run:
    asked = AttachmentsRequest(count=1, total_bytes=3, manifest=MANIFEST)
    return run_of(requested(attachments=asked), resolved(), prepared(), *events)


@pytest.mark.parametrize(
    "events",
    [(), (refused(),), (BEGUN,), (BEGUN, refused()), (BEGUN, refused(), step_undone())],
    ids=["nothing", "refused", "begun", "refused while written", "undone"],
)
def test_files_that_were_never_written_are_not_told_of(events: tuple[RunEvent, ...]) -> None:
    run = with_files(*events)
    assert attachments_view(run, TEXTS) is None
    assert attachment_list(run) is None


@pytest.mark.parametrize(
    ("events", "state"),
    [
        ((), "written"),
        (LIVED, "written"),
        ((refused(),), "removing"),
        (OVER, "removing"),
        ((*OVER, undo_failed()), "removing"),
        ((*OVER, step_undone()), "removed"),
        ((*OVER, step_undone(outcome="nothing_there")), "removed"),
        ((*OVER, step_undone(outcome="left_in_place")), "left_in_place"),
    ],
    ids=[
        "taken",
        "running",
        "refused",
        "announced",
        "failed",
        "undone",
        "nothing there",
        "left in place",
    ],
)
def test_what_has_become_of_files_is_told(events: tuple[RunEvent, ...], state: str) -> None:
    run = with_files(BEGUN, TAKEN, *events)
    assert members(attachments_view(run, {})) == {**SHORT, "state": state}
    listed = [
        {"name": file.name, "bytes": file.bytes, "sha256": file.sha256} for file in FILES.files
    ]
    assert members(attachments_view(run, TEXTS)) == {**SHORT, "files": listed, "state": state}
    assert attachment_list(run) == MANIFEST


def test_what_is_still_to_be_undone_is_told_with_its_place() -> None:
    assert pending_undo_views(with_files(BEGUN, TAKEN, *LIVED), {}) == []
    run = with_files(BEGUN, TAKEN, *OVER, undo_failed(retry_after_seconds=4))
    (view,) = pending_undo_views(run, {})
    assert members(view) == {
        "step": "attachments",
        "root": "/srv/work",
        "relative": relative_dir(run_id(1)),
        "failures": 1,
        "nextAttemptAt": run.effects_at,
        "error": None,
    }
    assert (
        pending_undo_views(with_files(BEGUN, TAKEN, *OVER, undo_failed(), step_undone()), {}) == []
    )
