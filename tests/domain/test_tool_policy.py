"""Which tools a child may use."""

import pytest

from domain.tool_policy import SESSION_TOOLS, ToolPolicy, permits, tool_policy


def test_a_leaf_has_all_tools_but_the_session_tools() -> None:
    policy = tool_policy("leaf")
    assert policy == ToolPolicy(allow=None, deny=SESSION_TOOLS)
    assert permits(policy, "read")
    assert not any(permits(policy, tool) for tool in SESSION_TOOLS)


def test_an_orchestrator_may_spawn_and_look_but_not_send() -> None:
    policy = tool_policy("orchestrator")
    assert policy.deny == ("sessions_send",)
    assert permits(policy, "sessions_spawn")


def test_deny_wins() -> None:
    policy = tool_policy(
        "leaf", allow=["sessions_send"], also_allow=["sessions_send"], deny=["sessions_send"]
    )
    assert not permits(policy, "sessions_send")


def test_allow_means_those_alone() -> None:
    policy = tool_policy("leaf", allow=["read", "web_*"], deny=["web_search"])
    assert permits(policy, "READ")
    assert permits(policy, "web_fetch")
    assert not permits(policy, "web_search")
    assert not permits(policy, "exec")


def test_a_tool_that_is_named_is_given_back() -> None:
    policy = tool_policy("orchestrator", also_allow=["Sessions_Send"])
    assert policy == ToolPolicy(allow=None, deny=())
    assert permits(policy, "anything")
    assert permits(tool_policy("leaf", allow=["sessions_history"]), "sessions_history")


def test_a_wildcard_or_a_group_gives_nothing_back() -> None:
    assert tool_policy("leaf", allow=["*"]).deny == SESSION_TOOLS
    assert tool_policy("leaf", allow=["group:sessions"]).deny == SESSION_TOOLS


def test_both_allow_lists_count_together_and_the_second_alone_restricts_nothing() -> None:
    both = tool_policy("leaf", allow=["read"], also_allow=["sessions_send"])
    assert both.allow == ("read", "sessions_send")
    assert tool_policy("leaf", allow=[], also_allow=["x"]).allow is None


def test_names_have_aliases_and_groups() -> None:
    policy = tool_policy("leaf", deny=["Bash", "group:fs", "group:nodes"])
    assert not permits(policy, "exec")
    assert not permits(policy, "bash")
    assert not permits(policy, "edit")
    assert "group:nodes" in policy.deny


def test_patches_are_judged_as_writes() -> None:
    assert not permits(tool_policy("leaf", deny=["write"]), "apply_patch")
    assert permits(tool_policy("leaf", allow=["write"]), "apply-patch")


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
    assert permits(ToolPolicy(allow=None, deny=(pattern,)), tool) is not matches
