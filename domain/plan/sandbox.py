"""Sandbox rules: isolation of a session, and the children that it may spawn.

spawnlog isolates nothing itself. A child that must run in a sandbox needs a runtime that declares
that it provides one.
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
    """Return the refusal of a child less isolated than its requester, or than required; else
    None.
    """
    if facts.child_sandboxed:
        return None
    if facts.requester_sandboxed:
        return rules.SANDBOX.refusal(_WOULD_ESCAPE)
    if facts.required:
        return rules.SANDBOX.refusal(_NOT_SANDBOXED)
    return None


def missing_sandbox_refusal(facts: SandboxFacts, agent_id: str) -> Refusal | None:
    """Return the refusal of a sandboxed child whose runtime provides no sandbox, else None."""
    if not facts.child_sandboxed or facts.runtime_provides:
        return None
    return rules.SANDBOX.refusal(
        f'Agent "{agent_id}" must run in a sandbox (sandbox.mode "{facts.mode}"), but its'
        " runtime does not provide one. Set providesSandbox on a runtime that isolates itself,"
        ' or sandbox.mode to "off".',
        status="error",
    )
