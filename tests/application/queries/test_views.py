"""Views: made of the attributes of a source, and as selections of another view's fields."""

from dataclasses import dataclass

import orjson
import pytest

from application.queries.views.run import ForContent, RunMetadataView, RunSummary, RunView
from application.queries.views.view import View, selection


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


def test_listed_run_leaves_out_fields_of_one_run() -> None:
    one_run = {"respawns", "context_preamble", "transcript_entries"}
    assert set(RunSummary.model_fields) == set(RunMetadataView.model_fields) - one_run
