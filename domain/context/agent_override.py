"""Choice among the agents that context scripts propose instead of the requested agent."""

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
    """An agent proposed by a script, exactly as in its output."""

    script_id: str
    priority: float
    proposed: str


@dataclass(frozen=True, slots=True)
class EvaluatedCandidate:
    """A proposed agent with its verdict.

    `agent_id` is the normalized proposal, or None if it is not an agent id. The winner's reason is
    `configured`, or `same_as_requested` if it confirms the requested agent.
    """

    script_id: str
    priority: float
    proposed: str
    agent_id: str | None
    verdict: CandidateVerdict
    reason: CandidateReason


@dataclass(frozen=True, slots=True)
class OverrideChoice:
    """The chosen agent, and all candidates in order of priority.

    Without a winner, `agent_id` is the requested agent.
    """

    requested_agent_id: str
    agent_id: str
    winner: EvaluatedCandidate | None
    candidates: tuple[EvaluatedCandidate, ...]

    @property
    def is_override(self) -> bool:
        """Return True if an agent other than the requested one will run."""
        return self.agent_id != self.requested_agent_id


def every_agent(_agent_id: str) -> bool:
    """Return True for every agent: none lacks credentials."""
    return True


def choose_override(
    requested_agent_id: str,
    candidates: Sequence[OverrideCandidate],
    configured: Collection[str],
    usable: Callable[[str], bool] = every_agent,
) -> OverrideChoice:
    """Choose the candidate of highest priority that names a usable, configured agent.

    Between equal priorities the first wins. Without a winner the requested agent runs.

    Args:
        requested_agent_id: Normalized id of the requested agent.
        candidates: Proposals in the order of their scripts.
        configured: Normalized ids of the configured agents.
        usable: Returns True if the agent's credentials are available. Called from the highest
            priority down, until it first returns True.
    """
    winner: EvaluatedCandidate | None = None
    judged: list[EvaluatedCandidate] = []
    for candidate in sorted(candidates, key=lambda candidate: -candidate.priority):
        evaluated = _evaluate_candidate(
            candidate, requested_agent_id, configured, usable, has_winner=winner is not None
        )
        if evaluated.verdict == "winner":
            winner = evaluated
        judged.append(evaluated)
    return OverrideChoice(
        requested_agent_id=requested_agent_id,
        agent_id=winner.agent_id if winner and winner.agent_id else requested_agent_id,
        winner=winner,
        candidates=tuple(judged),
    )


def log_line(choice: OverrideChoice, mask: Callable[[str], str] = str) -> str | None:
    """Return the verbose log line with every candidate and the winner, or None without candidates.

    Args:
        choice: The choice to show.
        mask: Removes secrets from a proposal.
    """
    if not choice.candidates:
        return None
    shown = ", ".join(
        f"{_arrow(candidate, mask)} (pri:{_number(candidate.priority)} {_mark(candidate)})"
        for candidate in choice.candidates
    )
    verdict = f"winner: {_arrow(choice.winner, mask)}" if choice.winner else "none valid"
    return f"[context-script] agentIdOverride candidates: [{shown}] → {verdict}"


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
    # Mask before cutting: a secret that was cut in half would no longer be recognized.
    proposed = single_line(mask(candidate.proposed), characters_max=NAME_CHARACTERS_MAX)
    return f"{script}→{proposed}"


def _mark(candidate: EvaluatedCandidate) -> str:
    return "✗" if candidate.verdict == "invalid" else "✓"


def _number(priority: float) -> str:
    return str(int(priority)) if float(priority).is_integer() else str(priority)
