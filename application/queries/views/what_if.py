"""The lines of an answer to what-if."""

from typing import Literal, Self
from uuid import UUID

from application.queries.views.rule import RuleName
from application.queries.views.view import RecordedJson, View
from domain.what_if.verdict import VerdictName


class DifferenceView(View):
    """The first thing that differs: which it is, as a JSON pointer, as it was recorded, and as it
    would be."""

    field: str
    recorded: RecordedJson
    decided: RecordedJson


class WhatIfVerdictView(View):
    """What would have come of one decision: of a `spawn`, or of a `message` to a session.
    `position` is that of its request, `rule` the one that would refuse it, or, of what is newly
    allowed, the one that refused it; `text` is what the caller would have been told. `missing`
    names what is not on record and decides it, `assumed` what is not on record and was taken to be
    in order."""

    run_id: UUID
    position: int
    kind: Literal["spawn", "message"]
    agent_id: str | None
    label: str | None
    requester_session_key: str
    config_revision: int
    verdict: VerdictName
    rule: RuleName | None
    text: str | None
    difference: DifferenceView | None
    missing: list[str]
    assumed: list[str]


class ProgressCountView(View):
    """Up to which position the log was gone through, of so many, and how many decisions it was."""

    position: int
    until: int
    decisions: int


class WhatIfProgressView(View):
    """How far the answer is; about once a second."""

    progress: ProgressCountView

    @classmethod
    def of(cls, position: int, until: int, decisions: int) -> Self:
        """The line."""
        count = ProgressCountView(position=position, until=until, decisions=decisions)
        return cls(progress=count)


class TotalsView(View):
    """All decisions from one position to another: how many there are of each verdict, by agent
    (the one that was requested) and by rule."""

    from_position: int
    to_position: int
    decisions: int
    by_verdict: dict[str, int]
    by_agent: dict[str, dict[str, int]]
    by_rule: dict[str, dict[str, int]]


class WhatIfTotalsView(View):
    """The last line of an answer that is whole."""

    totals: TotalsView


class FailureView(View):
    """Why the answer goes no further."""

    detail: str


class WhatIfFailureView(View):
    """The last line of an answer that is not whole."""

    failure: FailureView

    @classmethod
    def of(cls, detail: str) -> Self:
        """The line."""
        return cls(failure=FailureView(detail=detail))


WhatIfLine = WhatIfVerdictView | WhatIfProgressView | WhatIfTotalsView | WhatIfFailureView
