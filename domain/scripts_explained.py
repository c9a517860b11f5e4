"""What context scripts did, and whether one of them named another agent, in words."""

from domain.rule_explained import RuleFinding, quote_name
from domain.run.facts import Candidate, ScriptReceipt

_OUTCOMES = {
    "injected": "gave a text for the prompt",
    "empty": "gave no text",
    "failed": "failed, which refuses nothing and proposes nobody",
    "skipped": "was skipped",
}
_SHOWN = {
    "id",
    "outcome",
    "duration_ms",
    "exit_code",
    "status_code",
    "output_bytes",
    "candidate",
}
_WINNER = "winner"
_CREDENTIALS_MISSING = "credentials_missing"

NO_SCRIPT = RuleFinding({}, "no context script is listed")


def explain_script(receipt: ScriptReceipt) -> RuleFinding:
    """What one script did; its texts stay beside the log."""
    text = f"script {quote_name(receipt.id)} {_OUTCOMES[receipt.outcome]}"
    if receipt.candidate is not None:
        text += f", and proposed {quote_name(receipt.candidate)}"
    return RuleFinding(receipt.model_dump(mode="json", include=_SHOWN), text)


def explain_override(
    requested: str | None, taken: str | None, candidates: tuple[Candidate, ...]
) -> RuleFinding:
    """Which agent was taken, of the one that was asked for and those that were proposed."""
    winner = next((one for one in candidates if one.verdict == _WINNER), None)
    if taken != requested:
        text = f"{quote_name(taken)} was put in the place of {quote_name(requested)}"
        text += f" by script {quote_name(winner.script_id)}" if winner else ""
    elif winner is not None:
        text = f"script {quote_name(winner.script_id)} confirmed {quote_name(taken)}"
    elif candidates:
        text = f"nobody who was proposed can be taken, so {quote_name(taken)} stays"
    else:
        text = f"no script proposed an agent, so {quote_name(taken)} stays"
    without = {one.agent_id for one in candidates if one.verdict == _CREDENTIALS_MISSING}
    for agent_id in sorted(one for one in without if one is not None):
        text += f"; credentials of {quote_name(agent_id)} are missing"
    judged = [one.model_dump(mode="json") for one in candidates]
    return RuleFinding({"from": requested, "to": taken, "candidates": [*judged]}, text)


def is_override_expected(requested: str | None, candidates: tuple[Candidate, ...]) -> bool:
    """Whether a proposal won that puts another agent in the place of the requested one."""
    return any(one.verdict == _WINNER and one.agent_id != requested for one in candidates)
