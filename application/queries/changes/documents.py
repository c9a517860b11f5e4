"""Runs as JSON to be compared, with references in the place of their texts.

What differs is found without reading a text; those that stand in a difference are read afterwards.
A text that was written anew differs, also when it was erased since: then it reads as null.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, cast
from uuid import UUID

import orjson
from pydantic import WithJsonSchema

from application.log.texts import Contents
from application.ports.run_bars import ReachedStage
from application.queries.views.run import (
    RunMetadataView,
    RunView,
    attachment_list,
    summary_texts,
    view_of_run,
)
from domain.run.state import Run
from domain.values.record import ContentRef

PatchOperation = Annotated[
    dict[str, Any],
    WithJsonSchema(
        {
            "type": "object",
            "required": ["op", "path"],
            "properties": {
                "op": {"type": "string", "enum": ["add", "remove", "replace"]},
                "path": {"type": "string"},
                "value": {},
            },
        }
    ),
]
"""An operation of RFC 6902; `remove` has no value."""

StateDocument = Mapping[str, Any]
# No text that is recorded has a NUL in it.
_REFERENCE = re.compile("\0text:([0-9a-f-]{36}):([0-9]+):([0-9a-f]*)")
_PRINTED_REFERENCE = re.compile(rb'"\\u0000text:([0-9a-f-]{36}):([0-9]+):([0-9a-f]*)"')
_BEGINNING = "\0text:"
SET_BY_NO_EVENT = "respawns"
"""The field of a run that is set by no event of its own."""
_WITH_TEXTS = frozenset({str, dict, list})


def run_document(
    run: Run,
    texts: Mapping[UUID, str],
    stages: Sequence[ReachedStage],
    *,
    is_full: bool,
) -> StateDocument:
    """Return a run as it reads, with its texts or with previews of them. `texts` are those that a
    view looks into (`inner_texts`), `stages` those it has
    come to. The runs made from it (`respawns`) are not part of its states."""
    replaced = [*summary_texts(run), *([run.result] if run.result is not None else [])]
    shown = {**texts, **{ref.id: reference_to(ref) for ref in replaced}}
    form = RunView if is_full else RunMetadataView
    view = view_of_run(form, run, shown, stages)
    document = orjson.loads(view.json_bytes())
    # By whom it was respawned is told by the other runs, and changes without an event of its own.
    document.pop(SET_BY_NO_EVENT, None)
    return cast("StateDocument", document)


def inner_texts(run: Run) -> list[ContentRef]:
    """Texts that are JSON, and of which a view shows parts."""
    return [ref for ref in (run.requester.origin, attachment_list(run)) if ref is not None]


def reference_to(ref: ContentRef) -> str:
    """What stands for a text."""
    return f"\0text:{ref.id}:{ref.bytes}:{ref.hmac}"


def references_in(value: Any) -> list[ContentRef]:
    """The texts for which something stands in a value, in the order in which it is printed."""
    return [
        ContentRef(id=UUID(one[1].decode()), bytes=int(one[2]), hmac=one[3].decode())
        for one in _PRINTED_REFERENCE.finditer(orjson.dumps(value))
    ]


def with_texts(value: Any, texts: Mapping[UUID, str]) -> Any:
    """The value with its texts; null for those that are not there."""
    if isinstance(value, str):
        match = _reference(value)
        return texts.get(UUID(match[1])) if match else value
    if isinstance(value, dict):
        return {
            name: with_texts(one, texts) if type(one) in _WITH_TEXTS else one
            for name, one in value.items()
        }
    return [with_texts(one, texts) for one in value] if isinstance(value, list) else value


def _reference(text: str) -> re.Match[str] | None:
    # Few texts begin like that.
    return _REFERENCE.fullmatch(text) if text.startswith(_BEGINNING) else None


async def texts_of(
    refs: Iterable[ContentRef], contents: Contents, *, is_full: bool
) -> Mapping[UUID, str]:
    """Texts by id, or their beginnings."""
    return await (contents.texts if is_full else contents.previews)(refs)
