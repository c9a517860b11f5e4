"""Runs as JSON documents to compare, with references in place of their texts.

Differences are found without reading texts; only those in a difference are read afterwards. A text
that was replaced counts as a difference even if it was erased since; then it reads as null.
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
# No recorded text contains a NUL.
_REFERENCE = re.compile("\0text:([0-9a-f-]{36}):([0-9]+):([0-9a-f]*)")
_PRINTED_REFERENCE = re.compile(rb'"\\u0000text:([0-9a-f-]{36}):([0-9]+):([0-9a-f]*)"')
_BEGINNING = "\0text:"
SET_BY_NO_EVENT = "respawns"
"""The field of a run that no event of its own sets."""
_WITH_TEXTS = frozenset({str, dict, list})


def run_document(
    run: Run,
    texts: Mapping[UUID, str],
    stages: Sequence[ReachedStage],
    *,
    is_full: bool,
) -> StateDocument:
    """Return a run as JSON, with references in place of its texts, or of their previews.

    Args:
        run: The run.
        texts: The texts that a view parses (see `inner_texts`).
        stages: The stages that the run has reached.
        is_full: False for a caller without access to texts.

    Returns:
        The document without `respawns`, which is not part of the run's own state.
    """
    replaced = [*summary_texts(run), run.result, run.stop_reason]
    shown = {**texts, **{ref.id: reference_to(ref) for ref in replaced if ref is not None}}
    form = RunView if is_full else RunMetadataView
    view = view_of_run(form, run, shown, stages)
    document = orjson.loads(view.json_bytes())
    # Respawns are recorded by other runs, so the field changes without an event of this run.
    document.pop(SET_BY_NO_EVENT, None)
    return cast("StateDocument", document)


def inner_texts(run: Run) -> list[ContentRef]:
    """Return references to JSON texts of which a view shows parts."""
    return [ref for ref in (run.requester.origin, attachment_list(run)) if ref is not None]


def reference_to(ref: ContentRef) -> str:
    """Return the placeholder of a text."""
    return f"\0text:{ref.id}:{ref.bytes}:{ref.hmac}"


def references_in(value: Any) -> list[ContentRef]:
    """Return the texts whose placeholders occur in a value, in printed order."""
    return [
        ContentRef(id=UUID(match[1].decode()), bytes=int(match[2]), hmac=match[3].decode())
        for match in _PRINTED_REFERENCE.finditer(orjson.dumps(value))
    ]


def with_texts(value: Any, texts: Mapping[UUID, str]) -> Any:
    """Return the value with its texts; null for texts that are missing."""
    if isinstance(value, str):
        match = _reference(value)
        return texts.get(UUID(match[1])) if match else value
    if isinstance(value, dict):
        return {
            name: with_texts(member, texts) if type(member) in _WITH_TEXTS else member
            for name, member in value.items()
        }
    return [with_texts(item, texts) for item in value] if isinstance(value, list) else value


def _reference(text: str) -> re.Match[str] | None:
    # The prefix check avoids most matches.
    return _REFERENCE.fullmatch(text) if text.startswith(_BEGINNING) else None


async def texts_of(
    refs: Iterable[ContentRef], contents: Contents, *, is_full: bool
) -> Mapping[UUID, str]:
    """Return texts, or their previews, by id."""
    return await (contents.texts if is_full else contents.previews)(refs)
