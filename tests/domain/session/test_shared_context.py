"""The keys that a family shares."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from domain.run.commands import CreateSession
from domain.session.decide import (
    ChangeSharedContext,
    CloseSession,
    ContextMoved,
    InheritSharedContext,
    decide,
)
from domain.session.events import SessionEvent
from domain.session.shared_context import (
    REFERENCES_MAX,
    SHARED_BYTES_MAX,
    SHARED_KEYS_MAX,
    effective_shared_keys,
    is_key,
    limit_refusal,
    shared_size,
    shared_size_with,
    starting_shared_keys,
)
from domain.session.state import Session
from domain.spawn.cascade import CannotShare
from domain.spawn.request import SharedContextInput
from domain.values.record import ContentRef, session_stream
from domain.values.shared_values import ReferenceRequest, SharedChange, SharedKey, SharedScope
from tests.support.builders import run_commands as ask
from tests.support.builders.facts import fact_of
from tests.support.builders.family_log import FamilyLog, child_key
from tests.support.builders.storytelling import (
    ROOT,
    given_session,
    observed,
    observed_child,
    ref,
    run_id,
    session_of,
)
from tests.support.tiers import examples

# Shared context of a family, compared with a model: merging, limits, and start of a child.

KEYS = st.sampled_from(["a", "b", "c", "d"])

VALUES = st.none() | st.integers(0, 3)

WRITTEN = st.dictionaries(KEYS, VALUES, max_size=3)

ACTS = st.lists(st.tuples(st.sampled_from(["write", "inherit"]), WRITTEN), max_size=8)


def value(number: int) -> ContentRef:
    return ref(json.dumps(number))


def changes(written: Mapping[str, int | None]) -> tuple[SharedChange, ...]:
    return tuple(
        SharedChange(key=key, value=value(found) if found is not None else None)
        for key, found in written.items()
    )


def literal(key: str, number: int = 0, **more: object) -> SharedKey:
    plain = {"key": key, "value": value(number), "session_key": ROOT, "position": 1}
    return fact_of(SharedKey, plain | more)


def shown(keys: tuple[SharedKey, ...]) -> dict[str, ContentRef | None]:
    return {key.key: key.value for key in keys}


def sharing(
    *change_shared_context: ChangeSharedContext | InheritSharedContext | CloseSession,
) -> Session:
    """Return a child's session after these commands, none of which is refused."""
    story = given_session(observed_child())
    events: tuple[SessionEvent, ...] = story.events
    for command in change_shared_context:
        events = (*events, *story.decide(session_of(*events), command))
    return session_of(*events)


@given(ACTS)
@settings(deadline=None)
def test_own_keys_override_inherited_ones(
    acts: list[tuple[str, dict[str, int | None]]],
) -> None:
    inherited: dict[str, int] = {}
    own: dict[str, int | None] = {}
    commands: list[ChangeSharedContext | InheritSharedContext] = []
    for act, message in acts:
        if act == "write":
            commands.append(ChangeSharedContext(changes(message), cause="patch", by="admin"))
            for key, found in message.items():
                own[key] = found
                if found is None and key not in inherited:
                    del own[key]
        else:
            inherited = {key: found or 0 for key, found in message.items()}
            keys = tuple(literal(key, found) for key, found in inherited.items())
            commands.append(InheritSharedContext(run_id(1), ROOT, 7, keys))
    both = inherited | own
    expected = {key: value(found) for key, found in both.items() if found is not None}
    assert shown(effective_shared_keys(sharing(*commands))) == expected


@given(st.lists(WRITTEN, max_size=4), WRITTEN)
@settings(deadline=None)
def test_added_key_comes_last(
    before: list[dict[str, int | None]], added: dict[str, int | None]
) -> None:
    commands = [ChangeSharedContext(changes(item), cause="patch") for item in before]
    now = [item.key for item in effective_shared_keys(sharing(*commands))]
    kept = {key: found for key, found in added.items() if found is not None}
    later = effective_shared_keys(
        sharing(*commands, ChangeSharedContext(changes(kept), cause="patch"))
    )
    assert [item.key for item in later][: len(now)] == now
    assert [item.key for item in later][len(now) :] == [key for key in kept if key not in now]


def test_key_shared_by_own_spawn_stays_the_familys() -> None:
    entered = literal("a", 1, run_id=run_id(5), position=9)
    request = literal("a", 1, run_id=run_id(5), position=3)
    assert starting_shared_keys((entered,), (request,)) == (entered,)
    overwritten = literal("a", 2, run_id=run_id(6), position=10)
    assert starting_shared_keys((overwritten,), (request,)) == (request,)


def test_patch_is_for_the_version_read() -> None:
    story = given_session(observed())
    first = ChangeSharedContext(changes({"a": 1}), cause="patch", expected=0)
    events = story.decide(story.state, first)
    after = given_session(observed(), *events)
    after.when(first).refused(ContextMoved, "version 2")
    after.when(ChangeSharedContext((), cause="patch", expected=2)).then()


@given(st.dictionaries(st.text(min_size=1, max_size=5), st.integers(), max_size=5))
def test_size_is_that_of_one_compact_json_object(values: dict[str, int]) -> None:
    texts = {key: json.dumps(found) for key, found in values.items()}
    whole = json.dumps(values, separators=(",", ":"), ensure_ascii=False)
    size = shared_size((key, len(text)) for key, text in texts.items())
    assert (size.bytes, size.keys) == (len(whole.encode("utf-8", "surrogatepass")), len(values))


def test_shared_limits_count_present_and_added_keys() -> None:
    empty = shared_size(()).bytes
    room = SHARED_BYTES_MAX - empty - len('"a":')
    assert limit_refusal((), [("a", room)], "family") is None
    refused = limit_refusal((), [("a", room + 1)], "family")
    assert refused is not None
    assert (refused.rule, refused.current, refused.limit) == ("shared_context", 65537, 65536)
    # The scope `child` has the same limit, so the text does not advise it.
    assert limit_refusal((), [("a", room + 1)], "child") is not None
    assert "sharedContextScope" not in refused.text
    many = tuple(literal(f"k{number}") for number in range(SHARED_KEYS_MAX))
    assert limit_refusal(many, [("k1", 9)], "child") is None
    crowded = limit_refusal(many, [("new", 9)], "child")
    assert crowded is not None
    assert "would have 65 keys, more than the 64 allowed (64 are in use)" in crowded.text
    assert "share less with this child" in crowded.text


def test_references_have_no_part_in_the_size() -> None:
    result = literal("r", kind="reference", value=ref("x" * 90_000), run_id=run_id(4))
    assert shared_size_with((result,), [("a", 1)]) == shared_size([("a", 1)])


def test_what_may_be_a_key() -> None:
    assert all(map(is_key, ("a", "my key", "ключ", "k" * 128, "a$b", "a.b/c~d")))
    assert not any(map(is_key, ("", " a", "a ", "k" * 129, "$a", "a\nb", "a\u202eb", "a\0")))


# Shared context of a family's members, decided and recorded with their runs.

GOAL = SharedContextInput(values=(("goal", '"win"'),))

LARGE = '"' + "x" * 40_000 + '"'


def shared_key(log: FamilyLog, key: str, text: str, by: str) -> SharedKey:
    return SharedKey(
        key=key, value=ref(text), session_key=ROOT, position=9, run_id=log.run(by).run_id
    )


def creation(log: FamilyLog, name: str, *shared: SharedChange) -> CreateSession:
    run = log.run(name)
    return ask.create(run.epoch, depth=run.depth, max_depth=3, shared=shared)


def prepare(log: FamilyLog, name: str) -> None:
    run = log.run(name)
    key = child_key(run.run_id)
    log.tell(name, ask.resolve(run.epoch), ask.prepare(run.epoch, child_session_key=key))


def test_keys_of_a_spawn_come_with_its_session() -> None:
    log = FamilyLog()
    log.spawn("a", shared=GOAL)
    prepare(log, "a")
    assert effective_shared_keys(log.session("main")) == ()
    assert log.tell("a", creation(log, "a", SharedChange(key="goal", value=ref('"win"')))) == [
        "run a SessionCreated",
        "session main SharedContextChanged",
        "session a SessionObserved",
        "run a RunQueued",
    ]
    (key,) = effective_shared_keys(log.session("main"))
    assert (key.key, key.run_id, key.session_key) == ("goal", log.run("a").run_id, ROOT)
    created = next(
        event for event in log.recorded if type(event.event).__name__ == "SessionCreated"
    )
    assert key.position == created.stamp.position + 1
    assert log.session("a").inherited is None


def test_second_of_two_large_shares_is_refused() -> None:
    log = FamilyLog()
    large = SharedChange(key="a", value=ref(LARGE))
    for name, key in (("first", "a"), ("second", "b")):
        log.spawn(name, shared=SharedContextInput(values=((key, LARGE),)))
        prepare(log, name)
    log.tell("first", creation(log, "first", large))
    second_change = SharedChange(key="b", value=ref(LARGE))
    with pytest.raises(CannotShare, match="80015 bytes, more than the 65536 allowed") as caught:
        log.tell("second", creation(log, "second", second_change))
    assert caught.value.refusal.rule == "shared_context"
    log.tell("second", creation(log, "second", large))


def test_shared_keys_of_a_spawn_are_judged_at_admission() -> None:
    log = FamilyLog()
    log.spawn("first", shared=GOAL)
    answered = log.answer(
        "much", "main", shared=SharedContextInput(values=(("k", f'"{"x" * 65_536}"'),))
    )
    assert answered.refusal is not None
    assert (answered.refusal.rule, answered.facts.shared_keys) == ("shared_context", 1)
    assert answered.facts.shared_bytes == answered.refusal.current
    plain = log.answer("plain", "main")
    assert (plain.facts.shared_bytes, plain.facts.shared_keys) == (None, None)


def test_references_have_a_limit_with_inherited_ones() -> None:
    log = FamilyLog()
    log.spawn("a")
    log.create("a")
    log.tell("a", ask.claim())
    keys = tuple(
        shared_key(log, f"r{number}", "1", "a").changed({"kind": "reference"})
        for number in range(REFERENCES_MAX)
    )
    log.tell(
        "a",
        ask.start(
            log.run("a").epoch, shared_context=keys, inherits=True, shared_context_position=9
        ),
    )
    target = log.run("a").run_id

    def refers_to(key: str) -> SharedContextInput:
        return SharedContextInput(references=(ReferenceRequest(key=key, run_id=target),))

    assert log.answer("same", "a", shared=refers_to("r0")).refusal is None
    refusal = log.answer("more", "a", shared=refers_to("more")).refusal
    assert refusal is not None
    assert (refusal.rule, refusal.current, refusal.limit) == ("shared_context", 21, 20)
    assert "21 references (20 inherited), more than the 20 allowed" in refusal.text


THREE_KEYS = st.sampled_from(["a", "b", "c"])

SPAWNED = st.dictionaries(THREE_KEYS, st.integers(0, 9), max_size=2)

PATCHED = st.dictionaries(THREE_KEYS, st.none() | st.integers(0, 9), max_size=2)

WHO = st.integers(0, 4)

FAMILY_ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("spawn"), WHO, SPAWNED, st.sampled_from(["family", "child"])),
        st.tuples(st.just("claim"), WHO),
        st.tuples(st.just("start"), WHO),
        st.tuples(st.just("patch"), WHO, PATCHED),
    ),
    max_size=20,
)


@dataclass
class Context:
    """Model of a session's shared context, as two dictionaries; None is a removed key."""

    inherited: dict[str, int] = field(default_factory=dict)
    own: dict[str, int | None] = field(default_factory=dict)

    def now(self) -> dict[str, int]:
        return {
            key: value for key, value in (self.inherited | self.own).items() if value is not None
        }

    def write(self, values: dict[str, Any]) -> None:
        for key, value in values.items():
            self.own[key] = value
            if value is None and key not in self.inherited:
                del self.own[key]


@dataclass
class Child:
    """A child of the model, with its requester's recorded context at its claim."""

    name: str
    by: str
    literals: dict[str, int]
    expected: dict[str, int] | None = None
    then: Session | None = None
    has_started: bool = False


class Families:
    """A log and its model, side by side."""

    def __init__(self) -> None:
        self.log = FamilyLog(max_children=100, max_spawn_depth=100)
        self.log.spawn("first")
        self.contexts = {"main": Context()}
        self.children: list[Child] = []

    def act(self, kind: str, who: int, *more: Any) -> None:
        if kind in ("spawn", "patch"):
            names = [*self.contexts]
            getattr(self, kind)(names[who % len(names)], *more)
        elif self.children:
            getattr(self, kind)(self.children[who % len(self.children)])

    def spawn(self, by: str, values: dict[str, int], scope: SharedScope) -> None:
        name = f"child {len(self.children)}"
        texts = tuple((key, json.dumps(value)) for key, value in values.items())
        shared = SharedContextInput(values=texts, scope=scope) if values else None
        self.log.spawn(name, by, shared=shared)
        run = self.log.run(name)
        key = child_key(run.run_id)
        added = _changes(values) if scope == "family" else ()
        create = ask.create(run.epoch, depth=run.depth, max_depth=100, shared=added)
        prepare = ask.prepare(run.epoch, child_session_key=key)
        self.log.tell(name, ask.resolve(run.epoch), prepare, create)
        if scope == "family":
            self.contexts[by].write(values)
        self.contexts[name] = Context()
        self.children.append(Child(name, by, values))

    def patch(self, name: str, values: dict[str, int | None]) -> None:
        session = self.log.session(name)
        events = decide(session, ChangeSharedContext(_changes(values), cause="patch"))
        self.log.record([(session_stream(session.session_key), event) for event in events])
        self.contexts[name].write(values)

    def claim(self, child: Child) -> None:
        if child.expected is None:
            self.log.tell(child.name, ask.claim())
            child.then = self.log.session(child.by)
            child.expected = self.contexts[child.by].now() | child.literals

    def start(self, child: Child) -> None:
        if child.expected is None or child.has_started:
            return
        run = self.log.run(child.name)
        own = tuple(
            SharedKey(
                key=key,
                value=_value(literal),
                session_key=self.log.key(child.by),
                position=1,
                run_id=run.run_id,
            )
            for key, literal in child.literals.items()
        )
        keys = starting_shared_keys(effective_shared_keys(child.then), own)
        assert _shown(keys) == {key: _value(value) for key, value in child.expected.items()}
        start = ask.start(
            run.epoch, shared_context_position=9, shared_context=keys, inherits=bool(keys)
        )
        self.log.tell(child.name, start)
        child.has_started = True
        self.contexts[child.name].inherited = child.expected


def _value(number: int) -> Any:
    return ref(json.dumps(number))


def _changes(values: dict[str, Any]) -> tuple[SharedChange, ...]:
    return tuple(
        SharedChange(key=key, value=_value(value) if value is not None else None)
        for key, value in values.items()
    )


def _shown(keys: tuple[SharedKey, ...]) -> dict[str, Any]:
    return {key.key: key.value for key in keys}


# Keys of a child's own spawn override the requester's earlier patches.
@example([("spawn", 0, {"c": 0}, "family"), ("patch", 0, {"c": 1}), ("claim", 0), ("start", 0)])
@given(FAMILY_ACTS)
@examples(150)
def test_everybody_has_what_the_model_says(acts: list[tuple[Any, ...]]) -> None:
    families = Families()
    for act in acts:
        families.act(*act)
        for name, context in families.contexts.items():
            found = _shown(effective_shared_keys(families.log.session(name)))
            assert found == {key: _value(value) for key, value in context.now().items()}, name
