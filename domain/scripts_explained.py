"""What context scripts did, and whether one of them named another agent, in words."""

from domain.rule_explained import Told, quoted
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

NO_SCRIPT = Told({}, "no context script is listed")


def script_explained(receipt: ScriptReceipt) -> Told:
    """What one script did; its texts stay beside the log."""
    text = f"script {quoted(receipt.id)} {_OUTCOMES[receipt.outcome]}"
    if receipt.candidate is not None:
        text += f", and proposed {quoted(receipt.candidate)}"
    return Told(receipt.model_dump(mode="json", include=_SHOWN), text)


def override_explained(
    requested: str | None, taken: str | None, candidates: tuple[Candidate, ...]
) -> Told:
    """Which agent was taken, of the one that was asked for and those that were proposed."""
    winner = next((one for one in candidates if one.verdict == _WINNER), None)
    if taken != requested:
        text = f"{quoted(taken)} was put in the place of {quoted(requested)}"
        text += f" by script {quoted(winner.script_id)}" if winner else ""
    elif winner is not None:
        text = f"script {quoted(winner.script_id)} confirmed {quoted(taken)}"
    elif candidates:
        text = f"nobody who was proposed can be taken, so {quoted(taken)} stays"
    else:
        text = f"no script proposed an agent, so {quoted(taken)} stays"
    without = {one.agent_id for one in candidates if one.verdict == _CREDENTIALS_MISSING}
    for agent_id in sorted(one for one in without if one is not None):
        text += f"; credentials of {quoted(agent_id)} are missing"
    judged = [one.model_dump(mode="json") for one in candidates]
    return Told({"from": requested, "to": taken, "candidates": [*judged]}, text)


def override_awaited(requested: str | None, candidates: tuple[Candidate, ...]) -> bool:
    """Whether a proposal won that puts another agent in the place of the requested one."""
    return any(one.verdict == _WINNER and one.agent_id != requested for one in candidates)
