"""Which proposal of another agent is taken, and why the others are not."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from domain.values.agent_id import is_valid_agent_id, normalise_agent_id
from domain.values.text import single_line

CandidateVerdict = Literal["winner", "valid", "invalid"]
CandidateReason = Literal[
    "configured",
    "same_as_requested",
    "lower_priority",
    "not_configured",
    "credentials_missing",
    "invalid_agent_id",
]
NAME_CHARACTERS_MAX = 80


@dataclass(frozen=True, slots=True)
class OverrideCandidate:
    """A script's proposal as it came from its output."""

    script_id: str
    priority: float
    proposed: str


@dataclass(frozen=True, slots=True)
class EvaluatedCandidate:
    """A proposal and what became of it.

    `agent_id` is the proposed id, normalised; None when it is no agent id. The winner's reason is
    `configured`, or `same_as_requested` when it confirms the agent that was asked for.
    """

    script_id: str
    priority: float
    proposed: str
    agent_id: str | None
    verdict: CandidateVerdict
    reason: CandidateReason


@dataclass(frozen=True, slots=True)
class OverrideChoice:
    """`agent_id` is the agent that will run; `candidates` in order of priority."""

    requested_agent_id: str
    agent_id: str
    winner: EvaluatedCandidate | None
    candidates: tuple[EvaluatedCandidate, ...]

    @property
    def is_override(self) -> bool:
        """Whether another agent than the requested one will run."""
        return self.agent_id != self.requested_agent_id


def every_agent(_agent_id: str) -> bool:
    """Every agent has its credentials, or needs none."""
    return True


def choose_override(
    requested_agent_id: str,
    candidates: Sequence[OverrideCandidate],
    configured: Collection[str],
    usable: Callable[[str], bool] = every_agent,
) -> OverrideChoice:
    """The candidate of highest priority that names a configured agent wins; of equals the first.

    `configured` holds normalised ids; `usable` tells whether the credentials of a configured agent
    can be had, and is asked, the best first, until one can. Without a winner the requested agent
    stays.
    """
    winner: EvaluatedCandidate | None = None
    judged: list[EvaluatedCandidate] = []
    for candidate in sorted(candidates, key=lambda candidate: -candidate.priority):
        one = _evaluate_candidate(
            candidate, requested_agent_id, configured, usable, has_winner=winner is not None
        )
        if one.verdict == "winner":
            winner = one
        judged.append(one)
    return OverrideChoice(
        requested_agent_id=requested_agent_id,
        agent_id=winner.agent_id if winner and winner.agent_id else requested_agent_id,
        winner=winner,
        candidates=tuple(judged),
    )


def log_line(choice: OverrideChoice, mask: Callable[[str], str] = str) -> str | None:
    """The line of a verbose log: every candidate and the winner; None without candidates. `mask`
    takes out of a proposal what must not be shown."""
    if not choice.candidates:
        return None
    shown = ", ".join(
        f"{_arrow(one, mask)} (pri:{_number(one.priority)} {_sign(one)})"
        for one in choice.candidates
    )
    result = f"winner: {_arrow(choice.winner, mask)}" if choice.winner else "none valid"
    return f"[context-script] agentIdOverride candidates: [{shown}] → {result}"


def _evaluate_candidate(
    candidate: OverrideCandidate,
    requested_agent_id: str,
    configured: Collection[str],
    usable: Callable[[str], bool],
    *,
    has_winner: bool,
) -> EvaluatedCandidate:
    agent_id: str | None = None
    verdict: CandidateVerdict = "invalid"
    reason: CandidateReason = "invalid_agent_id"
    if is_valid_agent_id(candidate.proposed):
        agent_id = normalise_agent_id(candidate.proposed)
        reason = "not_configured"
        if agent_id in configured and not (has_winner or usable(agent_id)):
            reason = "credentials_missing"
        elif agent_id in configured:
            verdict = "valid" if has_winner else "winner"
            reason = "same_as_requested" if agent_id == requested_agent_id else "configured"
            reason = "lower_priority" if has_winner else reason
    return EvaluatedCandidate(
        script_id=candidate.script_id,
        priority=candidate.priority,
        proposed=candidate.proposed,
        agent_id=agent_id,
        verdict=verdict,
        reason=reason,
    )


def _arrow(candidate: EvaluatedCandidate, mask: Callable[[str], str]) -> str:
    script = single_line(candidate.script_id, characters_max=NAME_CHARACTERS_MAX)
    # Half of a secret would not be found any more.
    proposed = single_line(mask(candidate.proposed), characters_max=NAME_CHARACTERS_MAX)
    return f"{script}→{proposed}"


def _sign(candidate: EvaluatedCandidate) -> str:
    return "✗" if candidate.verdict == "invalid" else "✓"


def _number(priority: float) -> str:
    return str(int(priority)) if float(priority).is_integer() else str(priority)
