"""Submit the transcript of a session that lives elsewhere."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from application.commands.context import CommandContext, CommandResponse
from application.commands.services import CommandServices
from application.log.answers import KeptTranscript
from application.queries.access import Caller
from application.queries.errors import invalid_value
from application.queries.operation import operation
from application.queries.session_reference import resolve_target_session
from application.session.transcript import EntryTooLargeError, SubmittedTranscript, TranscriptIntake
from domain.delivery.provided_transcript import ProvidedEntry
from domain.delivery.transcript import DURATION_MS_MAX, NAME_CHARACTERS_MAX, TOKENS_MAX
from domain.values.body import Body
from domain.values.json_text import text_of

ENTRIES_MAX = 10_000
VALUES_MAX = 100_000
"""Maximum number of JSON values in a body: ten per entry."""


Kind = Literal["message", "tool", "usage", "progress", "result", "text"]
TokensField = Annotated[int, Field(ge=0, le=TOKENS_MAX)]

# Required and optional members of each kind.
_MEMBERS: dict[Kind, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "message": (("role", "text"), ()),
    "tool": (("name",), ("input", "output", "durationMs")),
    "usage": (("inputTokens", "outputTokens"), ("model",)),
    "progress": (("text",), ()),
    "result": (("text",), ()),
    "text": (("text",), ()),
}


class EntryBody(Body):
    """A transcript entry. A `message` has `role` and `text`; a `tool` has `name` and optionally
    `input` and `output` (any JSON) and `durationMs`, the time from call to output; a `usage` has
    `inputTokens` and `outputTokens` and optionally `model`; all others have `text`."""

    kind: Kind
    role: Literal["assistant", "user", "system", "tool"] | None = None
    text: str | None = None
    name: Annotated[str, Field(min_length=1, max_length=NAME_CHARACTERS_MAX)] | None = None
    input: Any = None
    output: Any = None
    duration_ms: Annotated[int, Field(ge=0, le=DURATION_MS_MAX)] | None = None
    input_tokens: TokensField | None = None
    output_tokens: TokensField | None = None
    model: Annotated[str, Field(max_length=NAME_CHARACTERS_MAX)] | None = None

    @model_validator(mode="after")
    def _has_what_its_kind_has(self) -> "EntryBody":
        must, may = _MEMBERS[self.kind]
        given = self.members()
        missing = [name for name in must if given[name] is None]
        foreign = [
            name
            for name, value in given.items()
            if value is not None and name not in must and name not in may
        ]
        if missing:
            raise ValueError(f"an entry of kind {self.kind} requires {' and '.join(missing)}")
        if foreign:
            raise ValueError(f"an entry of kind {self.kind} must not have {' or '.join(foreign)}")
        return self

    def members(self) -> dict[str, Any]:
        """Return all members except the kind, by their names in JSON."""
        fields = EntryBody.model_fields
        return {str(fields[name].alias): value for name, value in self if name != "kind"}


class TranscriptBody(Body):
    """The conversation of a session."""

    entries: Annotated[
        list[EntryBody],
        Field(max_length=ENTRIES_MAX, description="The whole conversation, oldest entry first."),
    ]
    total_tokens: Annotated[
        TokensField | None, Field(description="Token count of the conversation, if known.")
    ] = None


def provided_entry(entry: EntryBody) -> ProvidedEntry:
    """Return the entry as it is stored: texts unchanged, other values as JSON."""
    must, may = _MEMBERS[entry.kind]
    given = entry.members()
    members = {name: given[name] for name in (*must, *may)}
    for name in ("input", "output"):
        if members.get(name) is not None:
            members[name] = text_of(members[name])
    if entry.duration_ms is None:
        # Entries without it are recorded as before it existed.
        members.pop("durationMs", None)
    return ProvidedEntry(entry.kind, members)


class TranscriptProvidedAnswer(KeptTranscript):
    """The receipt of an uploaded transcript. `position` is that of the event that recorded it."""

    position: int


@operation(
    "PUT",
    "/v1/sessions/{key}/transcript",
    name="provideTranscript",
    tag="sessions",
    scope="spawn",
    summary="Upload the transcript of a session that runs elsewhere",
    description=(
        "For a requester that runs elsewhere: a child spawned with `context` `fork` starts with"
        " the last transcript uploaded before its spawn. Upload the whole conversation each"
        " time; it replaces the previous one. An unchanged transcript records nothing. `tokens`"
        " is `totalTokens`; by default the last usage entry or a quarter of the bytes,"
        " whichever is more. The transcript of a session that was spawned here cannot be"
        " uploaded: it is that of its runs."
    ),
    errors=("session_closed", "transcript_is_kept_here", "too_much_told", "erased"),
    answer=TranscriptProvidedAnswer,
    repeat="key",
    shows_position=True,
    values_max=VALUES_MAX,
    body_required=True,
    command="needs a whole conversation: use the client",
)
async def provide_transcript(
    services: CommandServices,
    caller: Caller,
    key: str,
    body: TranscriptBody,
    command: CommandContext,
) -> CommandResponse:
    """Store the transcript of a session in place of the earlier one."""
    session = await resolve_target_session(services, caller, key)
    submitted = SubmittedTranscript(
        session_key=session.session_key,
        display_key=session.display_key,
        entries=tuple(map(provided_entry, body.entries)),
        total_tokens=body.total_tokens,
    )
    try:
        response = await TranscriptIntake(services.work).provide(
            submitted, caller.actor, command.reservation
        )
    except EntryTooLargeError as large:
        raise invalid_value(f"/entries/{large.index}", str(large)) from None
    return CommandResponse(response.answer, response.position)
