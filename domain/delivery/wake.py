"""What a session is woken with: what its children reported since it yielded."""

from collections.abc import Sequence

from domain.delivery.announcement import ChildFinding, child_findings
from domain.values.text import single_line

TASK_CHARACTERS_MAX = 300
HEADING = "Child completion results:"
_PRIOR = (
    "[Subagent Context] Your prior run ended while waiting for descendant subagent completions."
)
_ALL_DONE = "[Subagent Context] All pending descendants for that run have now settled."
_CONTINUE = (
    "[Subagent Context] Continue your workflow using these results. Spawn more subagents if needed,"
    " otherwise send your final answer."
)
_NOTHING = "(no sub-agent has anything to report)"


def wake_message(name: str, findings: Sequence[ChildFinding], *, at_work: int) -> str:
    """The message; `name` is what the session was asked for, its label or its task, and `at_work`
    how many of its children are not done yet."""
    waiting = _ALL_DONE
    if at_work:
        are = "sub-agent is" if at_work == 1 else "sub-agents are"
        waiting = (
            f"[Subagent Context] {at_work} {are} still at work; call sessions_yield again to wait"
            " for more."
        )
    task = single_line(name, characters_max=TASK_CHARACTERS_MAX)
    found = child_findings(findings, heading=HEADING) if findings else _NOTHING
    return "\n".join([_PRIOR, waiting, _CONTINUE, "", f"Task: {task}", "", found])
