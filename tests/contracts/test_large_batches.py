"""A batch has room for so much text, and what has none is recorded by the next one."""

import asyncio
from typing import Any

from uuid_utils.compat import uuid7

from application.log.event_log import ContentKey, Decision, Submission
from application.log.texts import TextStore
from infrastructure.outbound.log.append.writer import BATCH_TEXT_BYTES_MAX
from tests.support.builders.logged_family import content_key_of
from tests.support.builders.submissions import key, observing, seen, submission
from tests.support.servers.running_log import RunningLog

HALF = "x" * (BATCH_TEXT_BYTES_MAX // 2 + 1)
CALLERS = 5


def with_text(number: int, text: str) -> Submission[Any]:
    """An event of a session of its own, and a text."""
    session = uuid7()
    text_store = TextStore(session, content_key_of(session), uuid7)
    text_store.store("task", text)
    keys = (ContentKey(session, content_key_of(session)),)
    name = key(f"large-{number}")
    return submission(lambda _: Decision(number, [seen(name)], text_store.contents, keys))


async def test_texts_that_are_too_many_for_one_batch_go_into_several(postgres: RunningLog) -> None:
    large = [postgres.log.submit(with_text(number, HALF)) for number in range(CALLERS)]
    small = postgres.log.submit(observing(key("small")))
    *appended, last = await asyncio.gather(*large, small)
    assert [one.result for one in appended] == list(range(CALLERS))
    assert [one.position for one in (*appended, last)] == list(range(1, CALLERS + 2))
    # Two fill a batch; the small one goes with the last of the large ones.
    assert await postgres.commits() == CALLERS // 2 + 1
    assert await postgres.ask("SELECT sum(bytes) FROM contents") == [(CALLERS * len(HALF),)]


async def test_one_text_is_recorded_however_large_it_is(postgres: RunningLog) -> None:
    appended = await postgres.log.submit(with_text(1, HALF * 3))
    assert appended.position == 1
