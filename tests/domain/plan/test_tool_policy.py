"""Which tools a child may use."""

import pytest

from domain.plan.tools import (
    DEFAULT_DENY,
    LEAF_DEFAULT_DENY,
    SESSION_TOOLS,
    ToolPolicy,
    tool_policy,
)


def test_a_leaf_has_all_tools_but_those_of_sessions_and_of_the_default_list() -> None:
    policy = tool_policy("leaf")
    assert policy == ToolPolicy(allow=None, deny=(*SESSION_TOOLS, *LEAF_DEFAULT_DENY))
    assert policy.permits("read")
    assert not any(policy.permits(tool) for tool in policy.deny)


def test_an_orchestrator_may_spawn_and_look_but_not_send() -> None:
    policy = tool_policy("orchestrator")
    assert policy.deny == ("sessions_send", *DEFAULT_DENY)
    for tool in ("sessions_spawn", "sessions_list", "sessions_history", "subagents"):
        assert policy.permits(tool)


def test_a_list_of_ones_own_replaces_the_default_but_not_the_session_tools() -> None:
    for deny in ([], ["exec"]):
        policy = tool_policy("leaf", deny=deny)
        assert policy.deny == (*SESSION_TOOLS, *deny)
        assert policy.permits("cron")


def test_a_tool_of_the_default_list_is_given_back_by_its_name_alone() -> None:
    assert tool_policy("leaf", also_allow=["CRON "]).permits("cron")
    assert tool_policy("leaf", allow=["subagents"]).permits("subagents")
    assert not tool_policy("leaf", allow=["group:automation"]).permits("cron")
    assert not tool_policy("leaf", also_allow=["*"]).permits("cron")


def test_deny_wins() -> None:
    policy = tool_policy(
        "leaf", allow=["sessions_send"], also_allow=["sessions_send"], deny=["sessions_send"]
    )
    assert not policy.permits("sessions_send")


def test_allow_means_those_alone() -> None:
    policy = tool_policy("leaf", allow=["read", "web_*"], deny=["web_search"])
    assert policy.permits("READ")
    assert policy.permits("web_fetch")
    assert not policy.permits("web_search")
    assert not policy.permits("exec")


def test_a_tool_that_is_named_is_given_back() -> None:
    policy = tool_policy("orchestrator", also_allow=["Sessions_Send"])
    assert policy == ToolPolicy(allow=None, deny=DEFAULT_DENY)
    assert policy.permits("anything")
    assert tool_policy("leaf", allow=["sessions_history"]).permits("sessions_history")


def test_a_wildcard_or_a_group_gives_nothing_back() -> None:
    for allow in (["*"], ["group:sessions"]):
        assert tool_policy("leaf", allow=allow, deny=()).deny == SESSION_TOOLS


def test_both_allow_lists_count_together_and_the_second_alone_restricts_nothing() -> None:
    both = tool_policy("leaf", allow=["read"], also_allow=["sessions_send"])
    assert both.allow == ("read", "sessions_send")
    assert tool_policy("leaf", allow=[], also_allow=["x"]).allow is None


def test_names_have_aliases_and_groups() -> None:
    policy = tool_policy("leaf", deny=["Bash", "group:fs", "group:media"])
    assert not policy.permits("exec")
    assert not policy.permits("bash")
    assert not policy.permits("edit")
    assert "group:media" in policy.deny


@pytest.mark.parametrize(
    ("group", "tool"),
    [
        ("group:sessions", "sessions_yield"),
        ("group:runtime", "process"),
        ("group:web", "web_fetch"),
        ("group:memory", "memory_get"),
        ("group:ui", "canvas"),
        ("group:automation", "gateway"),
        ("group:messaging", "message"),
        ("group:nodes", "nodes"),
        ("group:agents", "agents_list"),
    ],
)
def test_a_group_stands_for_its_tools(group: str, tool: str) -> None:
    assert not tool_policy("orchestrator", deny=[group]).permits(tool)
    assert tool_policy("orchestrator", allow=[group], deny=[]).permits(tool)
    assert not tool_policy("orchestrator", allow=[group], deny=[]).permits("read")


def test_patches_are_judged_as_writes() -> None:
    assert not tool_policy("leaf", deny=["write"]).permits("apply_patch")
    assert tool_policy("leaf", allow=["write"]).permits("apply-patch")


@pytest.mark.parametrize(
    ("pattern", "tool", "matches"),
    [
        ("*", "anything", True),
        ("web_*", "web_fetch", True),
        ("web_*", "xweb_", False),
        ("*_x", "a_x", True),
        ("a*b*c", "axxbyyc", True),
        ("a*b*c", "acb", False),
        ("a*a", "a", False),
        ("a*a", "aa", True),
        ("a.c", "abc", False),
        ("*a" * 500, "a" * 400, False),
    ],
)
def test_a_star_stands_for_any_text(pattern: str, tool: str, matches: bool) -> None:
    assert ToolPolicy(allow=None, deny=(pattern,)).permits(tool) is not matches
