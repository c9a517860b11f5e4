"""Families that spawn, share, take away and start at random agree with plain dictionaries."""

import json
from dataclasses import dataclass, field
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from domain.session.decide import ChangeSharedContext, decide
from domain.session.shared_context import effective_shared_keys, starting_shared_keys
from domain.session.state import Session
from domain.spawn.request import SharedContextInput
from domain.values.record import session_stream
from domain.values.shared_values import SharedChange, SharedKey, SharedScope
from tests.support.builders import run_commands as ask
from tests.support.builders.family_log import FamilyLog, child_key
from tests.support.builders.storytelling import ref
from tests.support.tiers import examples

KEYS = st.sampled_from(["a", "b", "c"])
WRITTEN = st.dictionaries(KEYS, st.integers(0, 9), max_size=2)
PATCHED = st.dictionaries(KEYS, st.none() | st.integers(0, 9), max_size=2)
WHO = st.integers(0, 4)
ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("spawn"), WHO, WRITTEN, st.sampled_from(["family", "child"])),
        st.tuples(st.just("claim"), WHO),
        st.tuples(st.just("start"), WHO),
        st.tuples(st.just("patch"), WHO, PATCHED),
    ),
    max_size=20,
)


@dataclass
class Context:
    """What a session shares, as two dictionaries; None is taken away."""

    inherited: dict[str, int] = field(default_factory=dict)
    own: dict[str, int | None] = field(default_factory=dict)

    def now(self) -> dict[str, int]:
        return {key: one for key, one in (self.inherited | self.own).items() if one is not None}

    def write(self, values: dict[str, Any]) -> None:
        for key, one in values.items():
            self.own[key] = one
            if one is None and key not in self.inherited:
                del self.own[key]


@dataclass
class Child:
    """A child of the model, and what was on record of its requester at its claim."""

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
        texts = tuple((key, json.dumps(one)) for key, one in values.items())
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
                value=_value(one),
                session_key=self.log.key(child.by),
                position=1,
                run_id=run.run_id,
            )
            for key, one in child.literals.items()
        )
        keys = starting_shared_keys(effective_shared_keys(child.then), own)
        assert _shown(keys) == {key: _value(one) for key, one in child.expected.items()}
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
        SharedChange(key=key, value=_value(one) if one is not None else None)
        for key, one in values.items()
    )


def _shown(keys: tuple[SharedKey, ...]) -> dict[str, Any]:
    return {one.key: one.value for one in keys}


# What a child's own spawn says is above what its requester patched before it started.
@example([("spawn", 0, {"c": 0}, "family"), ("patch", 0, {"c": 1}), ("claim", 0), ("start", 0)])
@given(ACTS)
@examples(150)
def test_everybody_has_what_the_model_says(acts: list[tuple[Any, ...]]) -> None:
    families = Families()
    for act in acts:
        families.act(*act)
        for name, context in families.contexts.items():
            found = _shown(effective_shared_keys(families.log.session(name)))
            assert found == {key: _value(one) for key, one in context.now().items()}, name
