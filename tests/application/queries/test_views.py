"""Views from attributes, as selections of another view's fields, and of runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import orjson
import pytest

from application.projections.run_rows import RunRow
from application.queries.agents import ListedAgent, listed_agents
from application.queries.run_filter import ColumnFilter, RunFilter
from application.queries.views.run import (
    ForContent,
    RunMetadataView,
    RunSummary,
    RunView,
    attachment_list,
    attachments_view,
    pending_undo_views,
    summary_texts,
    view_of_run,
    view_texts,
)
from application.queries.views.view import View, selection
from domain.configuration.configuration import Configuration
from domain.context.attachment_manifest import file_list, relative_dir, render_file_list
from domain.context.attachments import AcceptedFiles, accept_file
from domain.run.events import RunEvent
from domain.run.facts import AttachmentsRequest
from domain.run.state import Run
from domain.values.record import ContentRef
from tests.support.builders import run_histories as past
from tests.support.builders.grid_histories import HISTORIES
from tests.support.builders.storytelling import ref, requested, run_id, run_of


class PartView(View):
    first_name: str


class WholeView(View):
    size: int
    part: PartView
    label: str | None


@selection("label", "note", "size")
class PickedView(WholeView):
    """A label and a size."""

    note: str


@dataclass
class Part:
    first_name: str


@dataclass
class Source:
    part: Part
    size: int = 3
    label: str | None = "a"


def test_view_takes_equal_names_from_its_source() -> None:
    view = WholeView.from_source(Source(Part("Ada")), label=None)
    assert view == WholeView(size=3, part=PartView(first_name="Ada"), label=None)
    with pytest.raises(AttributeError, match="size"):
        WholeView.from_source(Part("Ada"))


def test_selection_has_its_fields_in_order() -> None:
    picked = PickedView.from_source(Source(Part("Ada")), note="n")
    assert orjson.loads(picked.json_bytes()) == {"label": "a", "note": "n", "size": 3}
    assert list(PickedView.model_fields) == ["label", "note", "size"]
    assert PickedView.model_json_schema()["description"] == "A label and a size."
    with pytest.raises(AttributeError):
        _ = picked.part


def test_each_filter_names_one_column_of_runs() -> None:
    columns = {
        name: [item.column for item in field.metadata if isinstance(item, ColumnFilter)]
        for name, field in RunFilter.model_fields.items()
    }
    assert all(len(named) == 1 for named in columns.values()), columns
    assert {column for (column,) in columns.values()} <= {
        *RunRow._fields,
        "status",
        "over_position",
    }


def test_unconfigured_agent_has_no_model_and_no_runtime() -> None:
    allowed = {"allowAgents": ["main", "steward"]}
    defaults = {"runtime": {"type": "scripted"}, "model": "p/all", "subagents": allowed}
    agents = {"list": [{"id": "main", "name": "One"}], "defaults": defaults}
    configured = Configuration.model_validate({"agents": agents})
    assert listed_agents(configured, "main").agents == [
        ListedAgent(id="main", name="One", configured=True, model="p/all", runtime="scripted"),
        ListedAgent(id="steward", name=None, configured=False, model=None, runtime=None),
    ]


# Runs.


def texts_of(refs: Sequence[ContentRef]) -> dict[UUID, str]:
    return {ref.id: "text" for ref in refs}


def test_masked_run_has_no_text_of_scope_content() -> None:
    marks = {
        name: mark
        for name, field in RunView.model_fields.items()
        for mark in field.metadata
        if isinstance(mark, ForContent)
    }
    shown_instead = {name for mark in marks.values() for name in mark.instead}
    assert set(marks) == {"task", "progress", "result_text", "stop_reason", "requester_origin"}
    assert set(RunMetadataView.model_fields) == (
        set(RunView.model_fields) - set(marks) | shown_instead
    )
    one_run = {
        "respawns",
        "context_preamble",
        "transcript_entries",
        "parent_run_id",
        "stop_requested_by",
    }
    assert set(RunSummary.model_fields) == (
        set(RunMetadataView.model_fields) - one_run | {"error_cause"}
    )


@pytest.mark.parametrize("history", HISTORIES.values(), ids=[*HISTORIES])
def test_listed_run_tells_what_its_document_tells(history: past.History) -> None:
    """But for the names of files and of unknown runs, which are in the document alone."""
    run = run_of(*history)
    view = view_of_run(RunView, run, texts_of(view_texts(run)), ())
    listed = view_of_run(RunSummary, run, texts_of(summary_texts(run)), ())
    shared = {*RunSummary.model_fields} & {*RunView.model_fields} - {"attachments", "depends_on"}
    assert {name: getattr(view, name) for name in shared} == {
        name: getattr(listed, name) for name in shared
    }


MANIFEST, PLACE = ref("manifest"), relative_dir(run_id(1))
FILES = file_list(AcceptedFiles((accept_file("a", b"xyz"),)))
SHORT = {"count": 1, "totalBytes": 3, "relDir": PLACE}
BEGUN = past.step_begun("attachments", root="/srv/work", relative=PLACE)
TAKEN = past.step_taken(
    "attachments", outcome="written", manifest=MANIFEST, file_count=1, total_bytes=3
)
LIVED = (past.created(), past.queued(), past.claimed(), past.started())
OVER = (*LIVED, past.ended(), past.announced())


def with_files(*events: RunEvent) -> Run:
    attachments_request = AttachmentsRequest(count=1, total_bytes=3, manifest=MANIFEST)
    return run_of(
        requested(attachments=attachments_request), past.resolved(), past.prepared(), *events
    )


@pytest.mark.parametrize("events", [(), (BEGUN, past.refused(), past.step_undone())])
def test_unwritten_attachments_are_not_shown(events: tuple[RunEvent, ...]) -> None:
    run = with_files(*events)
    assert attachments_view(run, {}) is None
    assert attachment_list(run) is None


@pytest.mark.parametrize(
    ("events", "state"),
    [
        (LIVED, "written"),
        ((past.refused(),), "removing"),
        ((*OVER, past.undo_failed()), "removing"),
        ((*OVER, past.step_undone()), "removed"),
        ((*OVER, past.step_undone(outcome="nothing_there")), "removed"),
        ((*OVER, past.step_undone(outcome="left_in_place")), "left_in_place"),
    ],
)
def test_written_attachments_are_shown_with_their_state(
    events: tuple[RunEvent, ...], state: str
) -> None:
    run = with_files(BEGUN, TAKEN, *events)
    listed = [
        {"name": file.name, "bytes": file.bytes, "sha256": file.sha256} for file in FILES.files
    ]
    for texts, files in (({}, {}), ({MANIFEST.id: render_file_list(FILES)}, {"files": listed})):
        view = attachments_view(run, texts)
        assert view is not None
        assert view.model_dump() == {**SHORT, **files, "state": state}
    assert attachment_list(run) == MANIFEST


def test_pending_undo_is_shown_with_its_place() -> None:
    run = with_files(BEGUN, TAKEN, *OVER, past.undo_failed(retry_after_seconds=4))
    (view,) = pending_undo_views(run, {})
    assert view.model_dump() == {
        "step": "attachments",
        "root": "/srv/work",
        "relative": PLACE,
        "failures": 1,
        "nextAttemptAt": run.effects_at,
        "error": None,
    }
    for events in (LIVED, (*OVER, past.undo_failed(), past.step_undone())):
        assert pending_undo_views(with_files(BEGUN, TAKEN, *events), {}) == []
