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
    """An entry of a transcript; `sequence` counts from 1 within the run."""

    sequence: int
    recorded_at: datetime
    kind: str
    body: dict[str, Any]


class TranscriptView(View):
    """A page of a transcript; `nextAfter` is null behind the last one."""

    items: list[TranscriptEntryView]
    next_after: int | None
