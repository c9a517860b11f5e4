"""What is kept of a run: its prompt and its transcript."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from application.queries.views.view import View


class PromptPartView(View):
    """A stretch of a prompt text: where it comes from, UTF-8 offsets `[start, end)` within the
    text, and the SHA-256 of its bytes. `reusedFrom` is the earlier run for which a context script
    said it; null when it was run for this one, and for what no script said."""

    of: Literal["systemPrompt", "message"]
    source: str
    start: int
    end: int
    sha256: str
    reused_from: UUID | None


class PromptView(View):
    """The prompt as the child got it; the parts cover every byte of both texts."""

    system_prompt: str
    message: str
    parts: list[PromptPartView]


class TranscriptEntryView(View):
    """An entry of a transcript; `sequence` counts from 1 within the run, `recordedAt` is when the
    entry came from the agent."""

    sequence: int
    recorded_at: datetime
    kind: str
    body: dict[str, Any]


class TranscriptView(View):
    """A page of a transcript; `nextAfter` is null behind the last one. Up to `lastSequence` all
    entries were looked at, those of other kinds too: ask again with it as `after`. If `complete`,
    the run is over, and no entry comes behind the last page."""

    items: list[TranscriptEntryView]
    next_after: int | None
    last_sequence: int
    complete: bool
