"""A fact that is changed is another fact, and its JSON says all that is not as usual."""

from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import NODEFAULT
from msgspec.structs import fields

from domain.event_types import EVENT_TYPES
from domain.run.facts import SpawnOptions
from domain.run.state import Run
from domain.session.state import Session
from domain.values.record import ContentRef, Fact
from tests.support.builders.storytelling import ref, run_id


def test_a_changed_fact_is_one_that_was_made_so() -> None:
    fact = ref("a text")
    changed = fact.changed({"bytes": 7, "id": run_id(3)})
    made = ContentRef(id=run_id(3), bytes=7, hmac=fact.hmac)
    assert (changed, changed.to_json(), hash(changed)) == (made, made.to_json(), hash(made))


def test_the_fact_that_was_changed_stays_as_it_is() -> None:
    fact = ref("a text")
    before = fact.members()
    changed = fact.changed({"bytes": 7})
    assert fact.members() == before
    with pytest.raises(AttributeError, match="immutable"):
        changed.bytes = 8  # type: ignore[misc]


def test_defaults_are_left_out_of_what_is_stored_and_not_of_what_is_told() -> None:
    options = SpawnOptions(mode="session", run_timeout_seconds=1.5)
    assert options.to_json() == b'{"runTimeoutSeconds":1.5,"mode":"session"}'
    assert options.members() == {
        "runTimeoutSeconds": 1.5,
        "sandbox": "inherit",
        "context": None,
        "lightContext": False,
        "expectsCompletionMessage": True,
        "model": None,
        "thinking": None,
        "mode": "session",
        "cleanup": "keep",
        "activeModel": None,
        "activeThinking": None,
        "requesterSandboxed": False,
    }


@given(st.builds(SpawnOptions))
def test_a_fact_is_the_same_when_it_is_read_again(options: SpawnOptions) -> None:
    assert SpawnOptions.from_json(options.to_json()) == options


def test_default_that_was_read_is_left_out() -> None:
    """msgspec leaves out the object that is the default, not one that is only equal to it."""
    kinds = set[type[Fact]]()
    for kind in (*EVENT_TYPES.values(), Run, Session):
        _add_facts_in(kind, kinds)
    assert {SpawnOptions, ContentRef} < kinds
    for kind in kinds:
        for field in fields(kind):
            if field.default is not NODEFAULT:
                read = msgspec.json.decode(msgspec.json.encode(field.default), type=field.type)
                assert read is field.default, (kind, field.name)


def _add_facts_in(hint: Any, found: set[type[Fact]]) -> None:
    for part in get_args(hint):
        _add_facts_in(part, found)
    if isinstance(hint, type) and issubclass(hint, Fact) and hint not in found:
        found.add(hint)
        for field in fields(hint):
            _add_facts_in(field.type, found)
