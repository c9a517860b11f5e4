"""Views: made of the attributes of a source, and as selections of another view's fields."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import orjson
import pytest

from application.queries.views.run import (
    ForContent,
    RunMetadataView,
    RunSummary,
    RunView,
    summary_texts,
    view_of_run,
    view_texts,
)
from application.queries.views.view import View, selection
from domain.values.record import ContentRef
from tests.support.builders.grid_histories import HISTORIES
from tests.support.builders.run_histories import History
from tests.support.builders.storytelling import run_of


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


def test_view_without_an_attribute_is_refused() -> None:
    with pytest.raises(AttributeError, match="size"):
        WholeView.from_source(Part("Ada"))


def test_selection_has_its_fields_in_order() -> None:
    picked = PickedView.from_source(Source(Part("Ada")), note="n")
    assert orjson.loads(picked.json_bytes()) == {"label": "a", "note": "n", "size": 3}
    assert list(PickedView.model_fields) == ["label", "note", "size"]
    assert PickedView.model_json_schema()["description"] == "A label and a size."
    with pytest.raises(AttributeError):
        _ = picked.part


def test_masked_run_has_no_text_of_scope_content() -> None:
    marks = {
        name: mark
        for name, field in RunView.model_fields.items()
        for mark in field.metadata
        if isinstance(mark, ForContent)
    }
    shown_instead = {name for mark in marks.values() for name in mark.instead}
    assert set(marks) == {"task", "progress", "result_text", "requester_origin"}
    assert set(RunMetadataView.model_fields) == (
        set(RunView.model_fields) - set(marks) | shown_instead
    )


@pytest.mark.parametrize("history", HISTORIES.values(), ids=[*HISTORIES])
def test_listed_run_tells_what_its_document_tells(history: History) -> None:
    """But for the names of files and of unknown runs, which are in the document alone."""
    run = run_of(*history)
    one = view_of_run(RunView, run, _texts(view_texts(run)), ())
    listed = view_of_run(RunSummary, run, _texts(summary_texts(run)), ())
    shared = {*RunSummary.model_fields} & {*RunView.model_fields} - {"attachments", "depends_on"}
    assert {name: getattr(one, name) for name in shared} == {
        name: getattr(listed, name) for name in shared
    }


def _texts(refs: Sequence[ContentRef]) -> dict[UUID, str]:
    return {ref.id: "text" for ref in refs}


def test_listed_run_leaves_out_fields_of_one_run() -> None:
    one_run = {"respawns", "context_preamble", "transcript_entries"}
    assert set(RunSummary.model_fields) == set(RunMetadataView.model_fields) - one_run
