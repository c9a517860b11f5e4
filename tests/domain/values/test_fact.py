"""A fact that is changed is another fact, and its JSON says all that is not as usual."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.run.facts import SpawnOptions
from domain.values.record import ContentRef
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
