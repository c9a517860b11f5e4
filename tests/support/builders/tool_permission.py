"""Which tools a policy permits, as a runtime reads it."""

from domain.plan.tools import ToolPolicy

_ALIASES = {"bash": "exec", "apply-patch": "apply_patch"}
_IMPLIED_BY = {"apply_patch": "write"}


def permits(policy: ToolPolicy, tool: str) -> bool:
    """Whether the policy lets a tool be used. `apply_patch` is judged as `write` is, too."""
    plain = tool.strip().lower()
    name = _ALIASES.get(plain, plain)
    names = {name, _IMPLIED_BY.get(name, name)}
    if any(_matches(pattern, one) for pattern in policy.deny for one in names):
        return False
    if policy.allow is None:
        return True
    return any(_matches(pattern, one) for pattern in policy.allow for one in names)


def _matches(pattern: str, name: str) -> bool:
    """Whole-name match where `*` is any text; in time linear in both."""
    first, *rest = pattern.split("*")
    if not rest:
        return pattern == name
    if not name.startswith(first):
        return False
    at = len(first)
    *middle, last = rest
    for piece in middle:
        found = name.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return name.endswith(last) and len(name) - len(last) >= at
