"""Texts of a repeated decision, and reads from an unavailable log."""

from uuid import uuid4

import pytest

from application.log.event_log import LogUnavailableError
from application.log.retry import retry_while_unavailable
from application.log.texts import TextStore

SESSION, KEY = uuid4(), bytes(32)


def test_text_kept_before_is_kept_under_the_same_id() -> None:
    first = TextStore(SESSION, KEY, uuid4)
    refs = [first.store("task", "sweep"), first.store("task", "sweep")]
    again = TextStore(SESSION, KEY, uuid4, first.contents)
    assert [again.store("task", "sweep"), again.store("task", "sweep")] == refs
    assert again.contents == first.contents
    assert refs[0].id != refs[1].id


def test_decision_made_otherwise_keeps_its_texts_anew() -> None:
    first = TextStore(SESSION, KEY, uuid4)
    ref = first.store("task", "sweep")
    again = TextStore(SESSION, KEY, uuid4, first.contents)
    second_ref = again.store("refusal", "no room")
    assert second_ref.id != ref.id
    assert again.store("task", "sweep").id != ref.id
    assert [content.text for content in again.contents] == ["no room", "sweep"]


class Away:
    """A log that is unavailable for a number of reads, or fails otherwise."""

    def __init__(self, questions: int, failure: Exception | None = None) -> None:
        self.left, self.failure = questions, failure or LogUnavailableError("away")

    async def ask(self) -> str:
        if self.left:
            self.left -= 1
            raise self.failure
        return "here"


async def test_question_is_asked_again_while_the_log_is_away() -> None:
    assert await retry_while_unavailable(Away(1).ask, given_up=lambda: False) == "here"


@pytest.mark.parametrize(
    ("failure", "given_up"), [(LogUnavailableError("away"), True), (ValueError("no"), False)]
)
async def test_question_is_given_up_or_fails_for_another_reason(
    failure: Exception, given_up: bool
) -> None:
    away = Away(2, failure)
    with pytest.raises(type(failure)):
        await retry_while_unavailable(away.ask, given_up=lambda: given_up)
    assert away.left == 1
