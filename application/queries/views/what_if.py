"""Lines of a what-if answer."""

from typing import Literal, Self
from uuid import UUID

from application.queries.views.rule import RuleName
from application.queries.views.view import RecordedJson, View
from domain.what_if.verdict import VerdictName


class DifferenceView(View):
    """The first difference: its JSON pointer, the recorded value, and the value under the other
    configuration."""

    field: str
    recorded: RecordedJson
    decided: RecordedJson


class WhatIfVerdictView(View):
    """The verdict on one decision, a `spawn` or a `message` to a session. `position` is that of its
    request. `rule` is the rule that would refuse it or, if it is newly allowed, the rule that
    refused it. `text` is the answer that the caller would get. `missing` lists unrecorded facts
    that decide it; `assumed` lists unrecorded facts that were assumed to hold."""

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
    """The log position reached so far, the last position, and the number of decisions."""

    position: int
    until: int
    decisions: int


class WhatIfProgressView(View):
    """Progress of the answer, about once a second."""

    progress: ProgressCountView

    @classmethod
    def of(cls, position: int, until: int, decisions: int) -> Self:
        """Return the line."""
        count = ProgressCountView(position=position, until=until, decisions=decisions)
        return cls(progress=count)


class TotalsView(View):
    """Totals of all decisions in a range of positions: by verdict, requested agent and rule."""

    from_position: int
    to_position: int
    decisions: int
    by_verdict: dict[str, int]
    by_agent: dict[str, dict[str, int]]
    by_rule: dict[str, dict[str, int]]


class WhatIfTotalsView(View):
    """The last line of a complete answer."""

    totals: TotalsView


class FailureView(View):
    """The error that ended the answer early."""

    detail: str


class WhatIfFailureView(View):
    """The last line of an incomplete answer."""

    failure: FailureView

    @classmethod
    def of(cls, detail: str) -> Self:
        """Return the line."""
        return cls(failure=FailureView(detail=detail))


WhatIfLine = WhatIfVerdictView | WhatIfProgressView | WhatIfTotalsView | WhatIfFailureView
