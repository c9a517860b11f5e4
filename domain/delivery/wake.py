"""Message that wakes a session which yielded, with its children's reports since then."""

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
_READ = "(all that they reported was read before)"


def wake_message(
    name: str, findings: Sequence[ChildFinding], *, at_work: int, has_read: bool = False
) -> str:
    """Compose the message that wakes a session.

    Args:
        name: Label or task of the session.
        findings: Reports of its children since it yielded.
        at_work: Number of children that are still running.
        has_read: True if other reports are omitted because the session has already read them.
    """
    waiting = _ALL_DONE
    if at_work:
        are = "sub-agent is" if at_work == 1 else "sub-agents are"
        waiting = (
            f"[Subagent Context] {at_work} {are} still at work; call sessions_yield again to wait"
            " for more."
        )
    task = single_line(name, characters_max=TASK_CHARACTERS_MAX)
    nothing = _READ if has_read else _NOTHING
    found = child_findings(findings, heading=HEADING) if findings else nothing
    return "\n".join([_PRIOR, waiting, _CONTINUE, "", f"Task: {task}", "", found])
