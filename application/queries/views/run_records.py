"""Views of a run's prompt and transcript."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from application.queries.views.view import View


class PromptPartView(View):
    """A part of a prompt text: its source, its UTF-8 byte offsets `[start, end)` within the text,
    and the SHA-256 of its bytes. `reusedFrom` is the earlier run whose recorded script output was
    reused; null if the script ran for this run, or no script wrote the part."""

    of: Literal["systemPrompt", "message"]
    source: str
    start: int
    end: int
    sha256: str
    reused_from: UUID | None


class PromptView(View):
    """The prompt that the child received; the parts cover every byte of both texts."""

    system_prompt: str
    message: str
    parts: list[PromptPartView]


class TranscriptEntryView(View):
    """An entry of a transcript. `sequence` counts from 1 within the run; `recordedAt` is when the
    entry arrived from the agent."""

    sequence: int
    recorded_at: datetime
    kind: str
    body: dict[str, Any]


class TranscriptView(View):
    """A page of a transcript; `nextAfter` is null on the last page. Entries up to `lastSequence`
    were scanned, including other kinds: pass it as `after` to continue. If `complete`, the run is
    over, and no entry follows the last page."""

    items: list[TranscriptEntryView]
    next_after: int | None
    last_sequence: int
    complete: bool
