"""What a child may do, in words, from the event that fixed its plan."""

from domain.configuration.configuration import Configuration
from domain.configuration.places import BUILT_IN
from domain.content import ContentRef
from domain.explanation.plan import as_json_list
from domain.rule_explained import RuleFinding, quote_name
from domain.run.continuation_events import ContinuationPlanned
from domain.run.events import SessionCreated


def explain_tools(
    created: SessionCreated | ContinuationPlanned, configuration: Configuration | None = None
) -> RuleFinding:
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
            "allow": as_json_list(lists.allow),
            "alsoAllow": as_json_list(lists.also_allow),
            "deny": as_json_list(lists.deny),
            "at": at,
        }
    return RuleFinding(
        {
            "role": created.role,
            "allow": as_json_list(plan.tools_allow),
            "deny": [*plan.tools_deny],
            "configured": configured,
        },
        f"tools of role {quote_name(created.role)}{by}: {had}, {len(plan.tools_deny)} denied",
    )


def explain_capabilities(created: SessionCreated) -> RuleFinding:
    """What the child may do to others."""
    return describe_capabilities(
        created.depth, created.max_depth, created.role, created.control_scope
    )


def describe_capabilities(depth: int, max_depth: int, role: str, control_scope: str) -> RuleFinding:
    """What a child at that depth may do to others."""
    return RuleFinding(
        {"depth": depth, "maxDepth": max_depth, "role": role, "controlScope": control_scope},
        f"depth {depth} of at most {max_depth} has role {quote_name(role)} and"
        f" control scope {quote_name(control_scope)}",
    )


_NO_CONTEXT = "no context was handed over"
_BLANK_CONTEXT = "no context was handed over: nothing stood in it"


def explain_preamble(given: ContentRef | None, created: SessionCreated) -> RuleFinding | None:
    """How much its parent told the child, and how much of it was handed over, without the mark of a
    cut; None where the release that decided this did not record it."""
    sizes = created.preamble
    if sizes is None:
        kept = any(one.position == "preamble" for one in created.ingredients)
        return None if kept else RuleFinding({}, _NO_CONTEXT if given is None else _BLANK_CONTEXT)
    how = "whole" if sizes.kept_characters == sizes.given_characters else "cut"
    if not sizes.kept_characters:
        how = "not at all"
    text = (
        f"{sizes.kept_characters} of {sizes.given_characters} characters of context were handed"
        f" over, {how}; at most {sizes.characters_max}"
    )
    return RuleFinding(sizes.model_dump(mode="json", by_alias=True), text)
