"""A text that no database accepts affects only its caller, and delays no other."""

import time
from secrets import token_hex
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from application.log.envelope import Provenance
from application.log.event_log import (
    Content,
    Decision,
    Following,
    LogUnavailableError,
    Reservation,
    StoredAnswer,
    Submission,
)
from domain.values.record import ContentRef, run_stream
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.storytelling import requested, run_id
from tests.support.builders.submissions import (
    at_once,
    key,
    observe,
    observing,
    recording,
    seen,
    stalling,
    submission,
)
from tests.support.servers.running_log import RunningLog, running_on

SECONDS_MAX = 3.0


def _run(**changes: Any) -> Submission[None]:
    return recording((run_stream(run_id(1)), requested().changed(changes)))


def _beside(**changes: Any) -> Submission[None]:
    return submission(lambda _: Decision(None, [seen(key("poisoned"))], **changes))


def _content(text: str, *, size: int = 1, content_id: UUID | None = None) -> Content:
    ref = ContentRef(id=content_id or uuid7(), bytes=size, hmac="0" * 64)
    return Content(ref, run_id(1), "task", text)


def _reserving(answer: StoredAnswer, *following: Following, name: str = "key") -> Submission[None]:
    reservation = Reservation("admin", "POST", "/v1/spawns", name, b"body")
    decision = Decision(None, [seen(key("poisoned"))], answer=answer, following=following)
    return submission(lambda _: decision, reservation=reservation)


class _Name(str):
    """A string as a library may have it."""


TWICE = uuid7()
POISONS: dict[str, Submission[Any]] = {
    "a NUL in a column": _run(label="a\0b"),
    "a NUL in a state": _run(holder="a\0b", config_revision=3),
    "a NUL in the key of a stream": observing("agent:main:a\0b"),
    "a NUL in a content": _beside(contents=[_content("a\0b")]),
    "a NUL in an idempotency key": _reserving(StoredAnswer("accepted", {}), name="a\0b"),
    "a lone surrogate in a column": _run(label="a\ud800b"),
    "a lone surrogate in the key of a stream": observing("agent:main:a\ud800b"),
    "a lone surrogate in a content": _beside(contents=[_content("a\ud800b")]),
    "a lone surrogate in an answer": _reserving(StoredAnswer("accepted", {"label": "a\ud800b"})),
    "a key too long for an index": observing(key(token_hex(4_000))),
    "a number too great for its column": _beside(contents=[_content("x", size=2**40)]),
    "an answer that is no JSON": _reserving(StoredAnswer("accepted", {"what": object()})),
    "a content kept twice": _beside(contents=[_content("x", content_id=TWICE)] * 2),
}


@pytest.mark.parametrize("poison", POISONS)
async def test_poison_hurts_only_its_own_caller(postgres: RunningLog, poison: str) -> None:
    began = time.monotonic()
    healthy = [observing(key(number)) for number in range(6)]
    answers = await at_once(postgres.log, *healthy[:3], POISONS[poison], *healthy[3:])
    poisoned = answers.pop(3)
    assert isinstance(poisoned, Exception)
    assert not isinstance(poisoned, LogUnavailableError), "asking again would not help"
    assert [answer.result for answer in answers] == [(key(number),) for number in range(6)]
    assert sorted(answer.position for answer in answers) == list(range(1, 7))
    assert len(await postgres.events()) == 6
    assert time.monotonic() - began < SECONDS_MAX


@pytest.mark.parametrize("label", ["a\ud800b", _Name("scout"), object()], ids=type)
async def test_unprintable_event_fails_its_decision_alone(postgres: RunningLog, label: Any) -> None:
    others = [stalling(0, key(number)) for number in range(3)]
    *answers, failed = await at_once(postgres.log, *others, _run(label=label))
    assert isinstance(failed, ValueError)
    assert "SpawnRequested cannot be recorded: " in str(failed)
    assert [answer.result for answer in answers] == [1, 1, 1], "others were decided anew"


async def test_unrecordable_part_leaves_nothing_of_its_decision(
    postgres: RunningLog,
) -> None:
    unprintable = Decision(
        None, [(run_stream(run_id(1)), requested().changed({"label": object()}))]
    )
    for part in (unprintable, Decision(None, contents=[_content("x")])):
        first = _reserving(StoredAnswer("accepted", {}), Following(uuid7(), Provenance(), part))
        failed, second_server = await at_once(postgres.log, first, observing(key(token_hex(4))))
        assert isinstance(failed, ValueError)
        assert not isinstance(second_server, Exception)
    assert len(await postgres.events()) == 2
    assert await postgres.ask("SELECT 1 FROM idempotency") == []


async def test_lone_poison_leaves_the_writer_fit(
    postgres: RunningLog, family: LoggedFamily
) -> None:
    for poison in POISONS.values():
        (answer,) = await at_once(postgres.log, poison)
        assert isinstance(answer, Exception)
    await family.begin("scout")
    assert [run.version for run in family.runs.values()] == [7]
    assert await postgres.ask("SELECT 1 FROM contents WHERE body = 'x'") == []
    assert await postgres.ask("SELECT 1 FROM idempotency") == []


async def test_odd_text_is_kept_as_it_is(postgres: RunningLog, family: LoggedFamily) -> None:
    odd = "'; DROP TABLE events; -- \x01\x1b[31m\u202e \u2028 👩\u200d👩 %s %(x)s \\u0000 \ufffd"
    await family.spawn("odd", label=odd, task=odd)
    (label, state), *_ = await postgres.ask("SELECT label, state::json->>'label' FROM runs")
    assert (label, state) == (odd, odd)
    assert await postgres.ask("SELECT body FROM contents WHERE kind = 'task'") == [(odd,)]
    recorded = (await postgres.events())[1].event
    assert getattr(recorded, "label", None) == odd


@pytest.mark.server
async def test_poison_at_any_time_leaves_the_writer_fit(postgres: RunningLog) -> None:
    """psycopg prepares a statement at its sixth use, and believes so when just that pipeline fails;
    a rollback makes it forget, but not if there was one before."""
    poison = POISONS["a key too long for an index"]
    for healthy in range(3, 8):
        async with running_on(postgres.url) as fresh:
            await at_once(fresh.log, poison)
            await observe(fresh.log, [f"{healthy}-{number}" for number in range(healthy)])
            await at_once(fresh.log, poison)
            await observe(fresh.log, [f"{healthy} after {number}" for number in range(3)])
    assert len(await postgres.events()) == sum(range(3, 8)) + 15
