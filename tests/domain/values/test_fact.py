"""A fact that is changed is another fact."""

import pytest
from pydantic import ValidationError

from domain.values.record import ContentRef
from tests.support.builders.storytelling import ref, run_id


def test_a_changed_fact_is_what_a_copy_with_an_update_is() -> None:
    fact = ref("a text")
    changes = {"bytes": 7, "id": run_id(3)}
    changed = fact.changed(changes)
    assert changed == fact.model_copy(update=changes)
    assert changed == ContentRef(id=run_id(3), bytes=7, hmac=fact.hmac)
    assert changed.model_dump_json() == fact.model_copy(update=changes).model_dump_json()
    assert list(changed.__dict__) == list(ContentRef.model_fields)
    assert hash(changed) == hash(ContentRef(id=run_id(3), bytes=7, hmac=fact.hmac))


def test_the_fact_that_was_changed_stays_as_it_is() -> None:
    fact = ref("a text")
    before = fact.model_dump()
    changed = fact.changed({"bytes": 7})
    assert fact.model_dump() == before
    with pytest.raises(ValidationError):
        changed.bytes = 8  # type: ignore[misc]
