"""Which spawns are admitted."""

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.run.facts import AdmissionFacts
from domain.spawn.admission import ADMISSION, admit
from domain.values.refusals import Permitted, Refusal
from domain.values.session_key import SessionScope, canonical_session_key
from tests.support.builders.decided_spawns import DecidedSpawns
from tests.support.builders.facts import fact_of
from tests.support.builders.key_spellings import spelled
from tests.support.models.spawn_model import Asked
from tests.support.tiers import examples

pytestmark = pytest.mark.long

# The rules of admission: their order, their texts, and who may be named.


def facts(**changes: object) -> AdmissionFacts:
    """Return the facts of a plain request that every rule admits, with changes."""
    plain: dict[str, object] = {
        "requester_agent_id": "main",
        "agent_id_argument_given": False,
        "target_agent_id": "main",
        "mode": "run",
        "thread": False,
        "caller_depth": 0,
        "max_spawn_depth": 1,
        "active_children": 0,
        "max_children": 5,
        "require_agent_id": False,
        "allow_agents": None,
        "depth_from": "record",
    }
    return fact_of(AdmissionFacts, plain | changes)


def named(target: str | None, **changes: object) -> AdmissionFacts:
    """Return such facts with a given agent id."""
    return facts(agent_id_argument_given=True, target_agent_id=target, **changes)


def refusal_of(given_facts: AdmissionFacts, *, raw_agent_id: str = "") -> Refusal:
    answer = admit(ADMISSION, given_facts, raw_agent_id=raw_agent_id)
    assert isinstance(answer, Refusal)
    return answer


def not_among(listed: str) -> Refusal:
    """Return the refusal of an agent that is not allowed, with the allowed ones."""
    text = f"agentId is not allowed for sessions_spawn (allowed: {listed})"
    return Refusal(rule="allow_agents", status="forbidden", text=text)


PATH = "../../../etc/passwd"
NO_ID = Refusal(
    rule="agent_id",
    status="error",
    text=(
        f'Invalid agentId "{PATH}". Agent IDs must match [a-z0-9][a-z0-9_-]{{0,63}}. '
        "Use agents_list to discover valid targets."
    ),
)
NO_THREAD = Refusal(
    rule="mode",
    status="error",
    text=(
        'sessions_spawn(mode="session") requires thread=true so the subagent can stay bound to a '
        'channel thread. Retry with { mode: "session", thread: true } on a channel that supports '
        'threads, use mode="run" for one-shot work, or use sessions_send(sessionKey=...) to keep '
        "talking to a persistent session without thread binding."
    ),
)
TOO_DEEP = Refusal(
    rule="depth",
    status="forbidden",
    text="sessions_spawn is not allowed at this depth (current depth: 2, max: 2)",
    current=2,
    limit=2,
)
FULL = Refusal(
    rule="active_children",
    status="forbidden",
    text="sessions_spawn has reached max active children for this session (1/1)",
    current=1,
    limit=1,
)
UNNAMED = Refusal(
    rule="require_agent_id",
    status="forbidden",
    text=(
        "sessions_spawn requires explicit agentId when requireAgentId is configured. "
        "Use agents_list to see allowed agent ids."
    ),
)
MANY = tuple(f"agent-{number:04}" for number in range(150))
HUNDRED = ", ".join(MANY[:100])

DECISIONS: dict[str, tuple[AdmissionFacts, Permitted | Refusal]] = {
    "a plain request": (facts(), Permitted()),
    "no agent id": (named(None), NO_ID),
    "session mode without a thread": (facts(mode="session"), NO_THREAD),
    "session mode in a thread": (facts(mode="session", thread=True), Permitted()),
    "the deepest level": (facts(caller_depth=2, max_spawn_depth=2), TOO_DEEP),
    "the level above": (facts(caller_depth=1, max_spawn_depth=2), Permitted()),
    "no place": (facts(active_children=1, max_children=1), FULL),
    "no name, and one is required": (facts(require_agent_id=True), UNNAMED),
    "not listed": (named("beta", allow_agents=("alpha",)), not_among("alpha")),
    "nobody is listed": (named("beta", allow_agents=()), not_among("none")),
    "no list": (named("beta"), not_among("main")),
    "its own id, not listed": (named("main", allow_agents=("planner",)), not_among("planner")),
    "100 are listed": (named("beta", allow_agents=MANY[:100]), not_among(HUNDRED)),
    "101 are listed": (named("beta", allow_agents=MANY[:101]), not_among(f"{HUNDRED}, and 1 more")),
    "150 are listed": (named("beta", allow_agents=MANY), not_among(f"{HUNDRED}, and 50 more")),
    "listed": (named("beta", allow_agents=("beta",)), Permitted()),
    "anybody": (named("beta", allow_agents=(" * ",)), Permitted()),
    "listed in upper case": (named("research", allow_agents=("Research",)), Permitted()),
    "its own id": (named("main"), Permitted()),
    "no name, others are listed": (facts(allow_agents=("planner",)), Permitted()),
    "no name, nobody is listed": (facts(allow_agents=()), Permitted()),
}


@pytest.mark.parametrize("name", DECISIONS)
def test_spawn_is_admitted_or_refused(name: str) -> None:
    judged, expected = DECISIONS[name]
    assert admit(ADMISSION, judged, raw_agent_id=PATH) == expected


def test_hostile_agent_id_is_shown_on_one_bounded_line() -> None:
    text = refusal_of(named(None), raw_agent_id="a\n[admin] b" + "x" * 10_000).text
    assert "\n" not in text
    assert len(text) < 400


def test_rules_are_judged_in_order() -> None:
    everything_wrong: dict[str, object] = {
        "mode": "session",
        "caller_depth": 1,
        "active_children": 5,
        "require_agent_id": True,
        "allow_agents": (),
    }
    assert refusal_of(named(None, **everything_wrong)).rule == "agent_id"
    order = ["mode", "depth", "active_children", "require_agent_id"]
    mended: dict[str, object] = {
        "mode": "run",
        "caller_depth": 0,
        "active_children": 0,
        "require_agent_id": False,
    }
    for rule, mending in zip(order, mended.items(), strict=True):
        assert refusal_of(facts(**everything_wrong)).rule == rule
        everything_wrong |= dict([mending])
    assert refusal_of(named("beta", **everything_wrong)).rule == "allow_agents"


@settings(deadline=None)
@given(
    st.integers(-2, 6),
    st.integers(0, 6),
    st.integers(0, 30),
    st.integers(0, 20),
    st.lists(st.text(max_size=10), max_size=5) | st.none(),
    st.booleans(),
)
def test_permitted_means_that_every_number_is_under_its_limit(
    depth: int, deepest: int, active: int, most: int, allow: list[str] | None, thread: bool
) -> None:
    judged = facts(
        caller_depth=depth,
        max_spawn_depth=deepest,
        active_children=active,
        max_children=most,
        allow_agents=tuple(allow) if allow is not None else None,
        thread=thread,
    )
    permitted = admit(ADMISSION, judged) == Permitted()
    assert permitted == (depth < deepest and active < most)


# However a session's key is spelled, its children are counted in one place.


AGENTS = ("ops", "main", "team-1")
PART = st.text(alphabet="abcxyz019_.-éσ", min_size=1, max_size=6)
PARTS = st.lists(PART, min_size=1, max_size=4)
CAPS = st.integers(1, 4)
Written = st.SearchStrategy[str]


def admitted(cap: int, requests: Sequence[str], canonical_form: Callable[[str], str]) -> int:
    """Return how many of these spawns, each with its spelling of one session, are admitted."""
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
