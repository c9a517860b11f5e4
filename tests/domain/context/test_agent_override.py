"""Which proposal of another agent wins, and what is said of the others."""

from hypothesis import given, settings
from hypothesis import strategies as st

from domain.context.agent_override import OverrideCandidate, choose_override, log_line

CONFIGURED = frozenset({"main", "agent-x", "beta"})


def proposal(script_id: str, priority: float, proposed: str) -> OverrideCandidate:
    return OverrideCandidate(script_id=script_id, priority=priority, proposed=proposed)


def test_the_highest_priority_that_is_configured_wins() -> None:
    choice = choose_override(
        "steward",
        [
            proposal("low", 1, "beta"),
            proposal("ghost", 90, "nobody"),
            proposal("bad", 80, "Agent not found: xyz"),
            proposal("high", 50, "Agent-X"),
        ],
        CONFIGURED,
    )
    assert choice.agent_id == "agent-x"
    assert choice.is_override
    assert [
        (one.script_id, one.verdict, one.reason, one.agent_id) for one in choice.candidates
    ] == [
        ("ghost", "invalid", "not_configured", "nobody"),
        ("bad", "invalid", "invalid_agent_id", None),
        ("high", "winner", "configured", "agent-x"),
        ("low", "valid", "lower_priority", "beta"),
    ]


def test_of_equal_priorities_the_first_wins() -> None:
    choice = choose_override("a", [proposal("1", 0, "beta"), proposal("2", 0, "main")], CONFIGURED)
    assert choice.agent_id == "beta"


def test_a_script_that_confirms_the_requested_agent_wins_over_lower_ones() -> None:
    candidates = [proposal("confirms", 2, "main"), proposal("other", 1, "beta")]
    choice = choose_override("main", candidates, CONFIGURED)
    assert choice.agent_id == "main"
    assert not choice.is_override
    assert choice.winner is not None
    assert choice.winner.reason == "same_as_requested"


def test_without_a_valid_candidate_the_requested_agent_stays() -> None:
    choice = choose_override("steward", [proposal("a", 1, "nobody")], CONFIGURED)
    assert choice.agent_id == "steward"
    assert choice.winner is None
    assert choose_override("steward", [], CONFIGURED).candidates == ()


def test_an_agent_without_its_credentials_is_not_taken_and_the_next_one_is() -> None:
    asked: list[str] = []

    def usable(agent_id: str) -> bool:
        asked.append(agent_id)
        return agent_id != "agent-x"

    candidates = [
        proposal("low", 1, "main"),
        proposal("high", 3, "agent-x"),
        proposal("middle", 2, "beta"),
    ]
    choice = choose_override("steward", candidates, CONFIGURED, usable)
    assert choice.agent_id == "beta"
    assert [(one.script_id, one.verdict, one.reason) for one in choice.candidates] == [
        ("high", "invalid", "credentials_missing"),
        ("middle", "winner", "configured"),
        ("low", "valid", "lower_priority"),
    ]
    assert asked == ["agent-x", "beta"]
    assert "high→agent-x (pri:3 ✗)" in str(log_line(choice))


def test_the_requested_agent_is_not_confirmed_without_its_credentials() -> None:
    choice = choose_override("main", [proposal("a", 1, "main")], CONFIGURED, lambda _: False)
    assert (choice.agent_id, choice.winner, choice.is_override) == ("main", None, False)
    assert choice.candidates[0].reason == "credentials_missing"


def test_the_log_line_names_every_candidate_and_the_winner() -> None:
    candidates = [proposal("script-a", 100, "agent-x"), proposal("script-b", 50.5, "agent-y")]
    assert log_line(choose_override("s", candidates, CONFIGURED)) == (
        "[context-script] agentIdOverride candidates: [script-a→agent-x (pri:100 ✓), "
        "script-b→agent-y (pri:50.5 ✗)] → winner: script-a→agent-x"
    )


def test_the_log_line_says_when_none_is_valid() -> None:
    choice = choose_override("s", [proposal("a", 0, "x\ny")], CONFIGURED)
    assert log_line(choice) == (
        "[context-script] agentIdOverride candidates: [a→x y (pri:0 ✗)] → none valid"
    )
    assert log_line(choose_override("s", [], CONFIGURED)) is None


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(-3, 3) | st.floats(-3, 3), st.sampled_from(["main", "beta", "no", "?"])
        ),
        max_size=6,
    )
)
def test_nobody_configured_stands_above_the_winner(proposals: list[tuple[float, str]]) -> None:
    candidates = [proposal(str(at), *one) for at, one in enumerate(proposals)]
    choice = choose_override("requested", candidates, CONFIGURED)
    configured = [one for one in candidates if one.proposed in CONFIGURED]
    assert len(choice.candidates) == len(candidates)
    if choice.winner is None:
        assert not configured
    else:
        best = max(configured, key=lambda one: one.priority)
        assert choice.winner.script_id == best.script_id
