"""A changed fact is another fact, and its JSON has all values that are not defaults."""

import json
from pathlib import Path

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
from tests.support.builders.facts import any_fact, recorded_facts
from tests.support.builders.storytelling import ref, run_id
from world.model.log_invariants import stored_and_read

DEFAULTS = Path(__file__).parents[2] / "data" / "defaults_of_facts.json"


def test_changed_fact_equals_a_new_one() -> None:
    fact = ref("a text")
    changed = fact.changed({"bytes": 7, "id": run_id(3)})
    made = ContentRef(id=run_id(3), bytes=7, hmac=fact.hmac)
    assert (changed, changed.to_json(), hash(changed)) == (made, made.to_json(), hash(made))


def test_original_of_changed_fact_is_unchanged() -> None:
    fact = ref("a text")
    before = fact.members()
    changed = fact.changed({"bytes": 7})
    assert fact.members() == before
    with pytest.raises(AttributeError, match="immutable"):
        changed.bytes = 8  # type: ignore[misc]


def test_defaults_are_not_stored_but_shown() -> None:
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


@given(st.sampled_from((*EVENT_TYPES.values(), Run, Session)).flatmap(any_fact))
def test_fact_is_the_same_when_it_is_read_again(fact: Fact) -> None:
    assert stored_and_read(fact).members() == fact.members()


def test_defaults_of_recorded_fields_stay() -> None:
    """A stored fact omits defaults: with another default, a history would change.

    If an event needs another default, give it a new version; for a state, a new version of its
    projection.
    """
    found: dict[str, dict[str, object]] = {
        kind.__name__: {
            field.encode_name: msgspec.to_builtins(field.default)
            for field in fields(kind)
            if field.default is not NODEFAULT
        }
        for kind in recorded_facts()
    }
    kept = json.loads(DEFAULTS.read_bytes())
    for name, defaults in json.loads(json.dumps(found)).items():
        assert defaults == kept.get(name, {}), (
            f"{name}: add the default of a new field to {DEFAULTS}"
        )


def test_default_that_was_read_is_left_out() -> None:
    """msgspec omits the default object itself, not an equal one."""
    for kind in recorded_facts():
        for field in fields(kind):
            if field.default is not NODEFAULT:
                read = msgspec.json.decode(msgspec.json.encode(field.default), type=field.type)
                assert read is field.default, (kind, field.name)
