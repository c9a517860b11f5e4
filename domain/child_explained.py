"""What a child may do, in words, from the event that created its session."""

from domain.configuration.configuration import Configuration
from domain.configuration.places import BUILT_IN
from domain.plan_explained import listed
from domain.rule_explained import Told, quoted
from domain.run.events import SessionCreated


def tools_explained(created: SessionCreated, configuration: Configuration | None = None) -> Told:
    """Which tools the child has, and the lists that the revision of the decision makes them
    from; None where that cannot be read."""
    plan = created.plan
    had = "every tool" if plan.tools_allow is None else f"{len(plan.tools_allow)} allowed"
    configured, by = None, ""
    if configuration is not None:
        lists = configuration.tools.subagents.tools
        at = "tools.subagents.tools" if lists.model_fields_set else BUILT_IN
        by = f", by {'the built-in lists' if at == BUILT_IN else at}"
        configured = {
            "allow": listed(lists.allow),
            "alsoAllow": listed(lists.also_allow),
            "deny": listed(lists.deny),
            "at": at,
        }
    return Told(
        {
            "role": created.role,
            "allow": listed(plan.tools_allow),
            "deny": [*plan.tools_deny],
            "configured": configured,
        },
        f"tools of role {quoted(created.role)}{by}: {had}, {len(plan.tools_deny)} denied",
    )


def capabilities_explained(created: SessionCreated) -> Told:
    """What the child may do to others."""
    return Told(
        {
            "depth": created.depth,
            "maxDepth": created.max_depth,
            "role": created.role,
            "controlScope": created.control_scope,
        },
        f"depth {created.depth} of at most {created.max_depth} has role {quoted(created.role)} and"
        f" control scope {quoted(created.control_scope)}",
    )
