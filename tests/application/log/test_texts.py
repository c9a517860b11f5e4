"""Texts of a decision that is made again."""

from uuid import uuid4

from application.log.texts import TextStore

SESSION, KEY = uuid4(), bytes(32)


def test_what_was_kept_before_is_kept_under_the_same_id() -> None:
    first = TextStore(SESSION, KEY, uuid4)
    refs = [first.store("task", "sweep"), first.store("task", "sweep")]
    again = TextStore(SESSION, KEY, uuid4, first.contents)
    assert [again.store("task", "sweep"), again.store("task", "sweep")] == refs
    assert again.contents == first.contents
    assert refs[0].id != refs[1].id


def test_what_is_decided_otherwise_is_kept_anew() -> None:
    first = TextStore(SESSION, KEY, uuid4)
    ref = first.store("task", "sweep")
    again = TextStore(SESSION, KEY, uuid4, first.contents)
    other = again.store("refusal", "no room")
    assert other.id != ref.id
    assert again.store("task", "sweep").id != ref.id
    assert [one.text for one in again.contents] == ["no room", "sweep"]
