"""Whether a session is kept apart from the machine, and who may spawn whom because of it.

spawnlog isolates nothing itself: a child that has to be in a sandbox needs a runtime that says it
provides one.
"""

from domain.run.plan_facts import SandboxFacts
from domain.values import rules
from domain.values.refusals import Refusal

_WOULD_ESCAPE = (
    "Sandboxed sessions cannot spawn unsandboxed subagents. "
    "Set a sandboxed target agent or use the same agent runtime."
)
_NOT_SANDBOXED = (
    'sessions_spawn sandbox="require" needs a sandboxed target runtime. '
    'Pick a sandboxed agentId or use sandbox="inherit".'
)


def sandbox_refusal(facts: SandboxFacts) -> Refusal | None:
    """The refusal of a child that would be less isolated than its requester, or than was
    required; None when nothing speaks against it."""
    if facts.child_sandboxed:
        return None
    if facts.requester_sandboxed:
        return rules.SANDBOX.refusal(_WOULD_ESCAPE)
    if facts.required:
        return rules.SANDBOX.refusal(_NOT_SANDBOXED)
    return None


def missing_sandbox_refusal(facts: SandboxFacts, agent_id: str) -> Refusal | None:
    """The refusal of a child that has to be in a sandbox which its runtime does not provide."""
    if not facts.child_sandboxed or facts.runtime_provides:
        return None
    return rules.SANDBOX.refusal(
        f'Agent "{agent_id}" is to run in a sandbox (sandbox.mode "{facts.mode}"), and its '
        "runtime does not provide one. Set providesSandbox on a runtime that isolates itself, "
        'or sandbox.mode to "off".',
        status="error",
    )
