"""A question to the log is asked again while the log is away."""

import pytest

from application.log.event_log import LogUnavailable
from application.log.retry import retry_while_unavailable


class Away:
    """A log that is away for so many questions."""

    def __init__(self, questions: int) -> None:
        self.left = questions

    async def ask(self) -> str:
        if self.left:
            self.left -= 1
            raise LogUnavailable("away")
        return "here"


async def test_an_answer_is_waited_for() -> None:
    away = Away(1)
    assert await retry_while_unavailable(away.ask, given_up=lambda: False) == "here"


async def test_nobody_asks_on_who_has_given_up() -> None:
    away = Away(2)
    with pytest.raises(LogUnavailable):
        await retry_while_unavailable(away.ask, given_up=lambda: True)
    assert away.left == 1


async def test_another_failure_is_not_waited_out() -> None:
    async def ask() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await retry_while_unavailable(ask, given_up=lambda: False)
