"""The key of a session is used again only where nothing can have erased it since."""

from typing import Any, cast
from uuid import uuid4

import pytest

from application.execution import execute
from application.execution.end import UnwrittenOutput
from application.execution.execute import PreparedStart, _Execution
from application.log.event_log import Decision
from application.log.texts import TextStore
from tests.support.builders.run_histories import a_started_run
from tests.support.builders.storytelling import run_of

STORE = TextStore(uuid4(), b"key", uuid4)
ANSWERED = UnwrittenOutput(cast("Any", None), ())


def execution(unwritten: UnwrittenOutput | None = ANSWERED) -> _Execution:
    run = run_of(*a_started_run())
    start = PreparedStart(
        cast("Any", None), STORE, run, Decision(None), cast("Any", None), run.run_id
    )
    return _Execution(run, start=start, unwritten=unwritten)


async def test_key_in_hand_is_used_for_one_attempt() -> None:
    begun = execution()
    assert [begun.take_text_store(), begun.take_text_store()] == [STORE, None]


async def test_key_is_read_if_entries_were_written_before_the_end() -> None:
    assert execution(unwritten=None).take_text_store() is None


async def test_key_is_read_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execute, "KEY_SECONDS_MAX", 0.0)
    assert execution().take_text_store() is None
