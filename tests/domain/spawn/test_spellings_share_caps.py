"""However a session's key is spelled, its children are counted in one place."""

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.values.session_key import SessionScope, canonical_session_key
from tests.support.builders.decided_spawns import DecidedSpawns
from tests.support.builders.key_spellings import spelled, spellings
from tests.support.models.spawn_model import Asked
from tests.support.tiers import examples

pytestmark = pytest.mark.long

AGENTS = ("ops", "main", "team-1")
PART = st.text(alphabet="abcxyz019_.-éσ", min_size=1, max_size=6)
PARTS = st.lists(PART, min_size=1, max_size=4)
CAPS = st.integers(1, 4)
Written = st.SearchStrategy[str]


def admitted(cap: int, requests: Sequence[str], canonical_form: Callable[[str], str]) -> int:
    """How many of these spawns, each under its spelling, become children; all of them must be of
    one session."""
    spawns = DecidedSpawns()
    limits = {"maxChildrenPerAgent": cap, "maxSpawnDepth": 5}
    listed = [{"id": agent} for agent in AGENTS]
    spawns.configure({"agents": {"defaults": {"subagents": limits}, "list": listed}})
    answers = [
        spawns.spawn(f"r{number}", canonical_form(spelling), Asked())
        for number, spelling in enumerate(requests)
    ]
    (session,) = spawns.log.fold.sessions.values()
    children = [answer for answer in answers if answer.refusal is None]
    assert session.active_children == len(children)
    refusals = {answer.refusal.rule for answer in answers if answer.refusal is not None}
    assert refusals <= {"active_children"}
    return len(children)


def too_many(cap: int, more: int, written: Written, data: st.DataObject) -> list[str]:
    """More spawns than the cap, each in a spelling of its own."""
    return [data.draw(written) for _ in range(cap + more)]


@examples(80)
@given(st.sampled_from(AGENTS), PARTS, CAPS, CAPS, st.data())
def test_all_spellings_of_a_key_share_one_cap(
    agent: str, parts: list[str], cap: int, more: int, data: st.DataObject
) -> None:
    written: Written = spelled("agent", agent, *parts)
    if agent == AGENTS[0] and parts[0] not in ("agent", "main", "global"):
        # Without an agent it is a key of the default agent.
        written |= spelled(*parts)
    requests = too_many(cap, more, written, data)
    assert (
        admitted(cap, requests, lambda key: canonical_session_key(key, default_agent_id=AGENTS[0]))
        == cap
    )


@examples(80)
@given(
    st.lists(PART, min_size=1, max_size=2),
    st.sampled_from(["per-sender", "global"]),
    CAPS,
    CAPS,
    st.data(),
)
def test_so_do_all_names_of_a_main_session(
    main_parts: list[str], scope: SessionScope, cap: int, more: int, data: st.DataObject
) -> None:
    main_key = ":".join(main_parts)
    written: Written = spelled("main") | spelled(*main_parts)
    if scope == "global":
        written |= spelled("global")
    else:
        written |= spelled("agent", AGENTS[0], *main_parts)

    def form(key: str) -> str:
        return canonical_session_key(
            key, main_key=main_key, scope=scope, default_agent_id=AGENTS[0]
        )

    assert admitted(cap, too_many(cap, more, written, data), form) == cap


def test_two_keys_have_two_caps() -> None:
    spawns = DecidedSpawns()
    spawns.configure({"agents": {"defaults": {"subagents": {"maxChildrenPerAgent": 1}}}})
    for name in ("one", "other"):
        answers = [
            spawns.spawn(f"{name} {n}", canonical_session_key(n), Asked()) for n in spellings(name)
        ]
        assert [answer.refusal is None for answer in answers] == [True, *[False] * 5]
    assert len(spawns.log.fold.sessions) == 2
