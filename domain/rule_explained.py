"""One rule of a decision, as it is explained."""

from dataclasses import dataclass
from typing import Literal, Protocol

from pydantic import JsonValue

from domain.content import ContentRef
from domain.run.facts import AttachmentsRequest
from domain.values.record import Fact
from domain.values.text import single_line

RuleResult = Literal["passed", "refused", "not_judged", "not_recorded"]
"""`passed`: it did not refuse the spawn. `not_judged`: the decision did not come so far.
`not_recorded`: the release that decided did not record what it compared."""

SHOWN_CHARACTERS_MAX = 100


class RuleExplanation(Fact):
    """What a rule compared, and what came of it.

    `position` is that of the event which records it, None when nothing does; `config_revision`
    the revision it was decided under. `compared` is None when nothing was, or what was
    is not recorded.
    """

    step: str
    rule: str
    result: RuleResult
    compared: dict[str, JsonValue] | None = None
    text: str
    position: int | None
    config_revision: int


@dataclass(frozen=True, slots=True)
class RuleFinding:
    """What a rule compared, and that in words."""

    compared: dict[str, JsonValue]
    text: str


class PlanRequest(Protocol):
    """What a request asks for, as far as rules of the plan tell of it."""

    @property
    def requested_agent_id(self) -> str | None: ...

    @property
    def workspace_argument(self) -> ContentRef | None: ...

    @property
    def attachments(self) -> AttachmentsRequest | None: ...


def quote_name(value: object) -> str:
    """A name in quotation marks, on one line and cut to a limit."""
    return f'"{single_line(str(value), characters_max=SHOWN_CHARACTERS_MAX)}"'
