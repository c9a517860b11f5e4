"""What executors send: claims, signs of life, transcripts, ends."""

from typing import Annotated

from pydantic import Field

from application.execution.external import (
    LEASE_SECONDS,
    LEASE_SECONDS_MAX,
    LEASE_SECONDS_MIN,
    REPORT_ENTRIES_MAX,
    RESULT_BYTES_MAX,
)
from application.queries.operation import Body
from domain.delivery.transcript import NAME_CHARACTERS_MAX, USAGES_MAX, UsageEntry
from domain.run.facts import RunOutcome
from infrastructure.inbound.http.schemas.transcript import EntryBody, TokensField

REPORT_VALUES_MAX = 20_000
"""How many values a report may have: some twenty for each entry."""
ERROR_CHARACTERS_MAX = 10_000
EPOCHS_MAX = 2**31 - 1


LeaseSeconds = Annotated[
    float,
    Field(
        ge=LEASE_SECONDS_MIN,
        le=LEASE_SECONDS_MAX,
        description="So long the run is yours without another sign of life.",
    ),
]
Epoch = Annotated[
    int, Field(ge=1, le=EPOCHS_MAX, description="As the claim was answered. It fences the claim.")
]


class ClaimBody(Body):
    """Who executes the run."""

    executor: Annotated[
        str,
        Field(
            pattern=r"^[A-Za-z0-9._-]{1,64}$",
            description=(
                "A name that nobody else uses: by it a repeat is told from another executor."
            ),
        ),
    ]
    lease_seconds: LeaseSeconds = LEASE_SECONDS


class HeartbeatBody(Body):
    """A sign of life."""

    epoch: Epoch
    lease_seconds: LeaseSeconds = LEASE_SECONDS


class ReportBody(Body):
    """What the child said since."""

    epoch: Epoch
    first: Annotated[
        int,
        Field(
            ge=1,
            le=EPOCHS_MAX,
            description=(
                "The number of the first of these entries among all that you reported, from 1 on."
                " Entries that are there already stay as they are."
            ),
        ),
    ]
    entries: Annotated[list[EntryBody], Field(max_length=REPORT_ENTRIES_MAX)]


class UsageBody(Body):
    """Tokens, of one model."""

    input_tokens: TokensField
    output_tokens: TokensField
    cache_read_tokens: TokensField = 0
    cache_write_tokens: TokensField = 0
    model: Annotated[str, Field(min_length=1, max_length=NAME_CHARACTERS_MAX)] | None = None

    def entry(self) -> UsageEntry:
        """As a runtime would tell it."""
        return UsageEntry(
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            model=self.model,
            cache_read_tokens=self.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens,
        )


class EndBody(Body):
    """What came of the run. Without `result` it is the last `result` of the transcript, else the
    last message of the assistant; without `usage` what the transcript says of tokens."""

    epoch: Epoch
    outcome: RunOutcome
    result: Annotated[str, Field(max_length=RESULT_BYTES_MAX)] | None = None
    error: Annotated[str, Field(max_length=ERROR_CHARACTERS_MAX)] | None = None
    usage: Annotated[list[UsageBody], Field(max_length=USAGES_MAX)] | None = None
