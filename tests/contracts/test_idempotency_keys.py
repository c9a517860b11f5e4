"""A repeated request gets the first answer, without another decision."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from uuid_utils.compat import uuid7

from application.log.envelope import Provenance
from application.log.event_log import (
    AlreadyReserved,
    Decision,
    Following,
    Reservation,
    Reserved,
    StoredAnswer,
    Submission,
)
from domain.values.record import session_stream
from domain.values.refusals import Rejected
from tests.support.builders import run_commands as ask
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.storytelling import run_id
from tests.support.builders.submissions import at_once, key, observing, seen, submission
from tests.support.memory.served_log import ServedLog

FIRST = Reservation("admin", "POST", "/v1/spawns", "order-1", b"the body")
ACCEPTED = StoredAnswer("accepted", {"status": "accepted", "runs": [{"label": "ä\0"}], "n": None})


def asking(name: str = "one", **more: Any) -> Submission[str]:
    """Return a request under an idempotency key, answered at once unless `answer` is None."""
    plain = {
        "reservation": FIRST,
        "answer": ACCEPTED,
        "reserve_run": None,
        "following": (),
        **more,
    }
    decision = {each: plain.pop(each) for each in ("answer", "reserve_run", "following")}
    return submission(
        lambda _: Decision(name, [seen(key(name))], **decision),
        session_stream(key(name)),
        **plain,
    )


async def reserved_by(running: ServedLog, submission: Submission[str] | None = None) -> Reserved:
    """Return the reservation that a repeated request meets."""
    with pytest.raises(AlreadyReserved) as caught:
        await running.log.submit(submission or asking("again"))
    return caught.value.reserved


async def test_repeat_gets_the_first_answer(running: ServedLog) -> None:
    assert (await running.log.submit(asking())).result == "one"
    assert await reserved_by(running) == Reserved(b"the body", None, ACCEPTED)
    assert await running.types() == ["SessionObserved"]


@pytest.mark.parametrize(
    "changed",
    [
        replace(FIRST, token="child:1"),
        replace(FIRST, method="PATCH"),
        replace(FIRST, path="/v1/runs/1/stop"),
        replace(FIRST, key="order-2"),
    ],
    ids=["token", "method", "path", "key"],
)
async def test_keys_of_different_requests_are_different(
    running: ServedLog, changed: Reservation
) -> None:
    await running.log.submit(asking())
    assert (await running.log.submit(asking("two", reservation=changed))).result == "two"


async def test_request_under_way_has_no_answer(running: ServedLog, family: LoggedFamily) -> None:
    await family.spawn("scout", reservation=FIRST)
    assert await reserved_by(running) == Reserved(b"the body", family.id("scout"), None)
    run = family.run("scout")
    await family.tell("scout", ask.refuse(run.epoch), spawn_answer=ACCEPTED)
    assert await reserved_by(running) == Reserved(b"the body", family.id("scout"), ACCEPTED)


async def test_first_answer_stays(running: ServedLog, family: LoggedFamily) -> None:
    await family.spawn("scout", reservation=FIRST, answer=ACCEPTED)
    await family.tell("scout", ask.refuse(1), spawn_answer=StoredAnswer("error", {"text": "late"}))
    assert (await reserved_by(running)).answer == ACCEPTED


async def test_two_requests_at_once_are_one(running: ServedLog) -> None:
    first, second = await at_once(running.log, asking(), asking("two"))
    assert await running.commits() == 1
    assert first.result == "one"
    assert isinstance(second, AlreadyReserved)
    assert second.reserved == Reserved(b"the body", None, ACCEPTED)
    assert await running.types() == ["SessionObserved"]


async def test_two_processes_carry_out_one_request(running: ServedLog) -> None:
    async with running.other() as second_log:
        for number in range(20):
            reservation = replace(FIRST, key=f"order-{number}")
            answers = await asyncio.gather(
                running.log.submit(asking(f"a{number}", reservation=reservation)),
                second_log.log.submit(asking(f"b{number}", reservation=reservation)),
                return_exceptions=True,
            )
            turned_down = [answer for answer in answers if isinstance(answer, AlreadyReserved)]
            assert len(turned_down) == 1
            assert turned_down[0].reserved.answer == ACCEPTED
    assert len(await running.events()) == 20


async def test_repeat_in_completing_batch_gets_the_answer(
    running: ServedLog, family: LoggedFamily
) -> None:
    await family.spawn("scout", reservation=FIRST)
    completed, repeated = await asyncio.gather(
        family.tell("scout", ask.refuse(1), spawn_answer=ACCEPTED),
        running.log.submit(asking("again")),
        return_exceptions=True,
    )
    assert await running.commits() == 2
    assert not isinstance(completed, BaseException)
    assert isinstance(repeated, AlreadyReserved)
    assert repeated.reserved.answer == ACCEPTED


async def test_run_is_reserved_and_completed_in_one_batch(running: ServedLog) -> None:
    completing = submission(
        lambda _: Decision(None, [seen(key("end"))], run_answer=(run_id(7), ACCEPTED)),
        session_stream(key("end")),
    )
    await at_once(running.log, asking(answer=None, reserve_run=run_id(7)), completing)
    assert await running.commits() == 1
    assert await reserved_by(running) == Reserved(b"the body", run_id(7), ACCEPTED)


async def test_part_of_decision_answers_its_run(running: ServedLog) -> None:
    part = Decision(None, [seen(key("end"))], run_answer=(run_id(7), ACCEPTED))
    following = [Following(uuid7(), Provenance(), part)]
    first = asking(answer=None, reserve_run=run_id(7), following=following)
    _, repeated = await at_once(running.log, first, asking("again"))
    assert await running.commits() == 1
    assert isinstance(repeated, AlreadyReserved)
    assert await reserved_by(running) == Reserved(b"the body", run_id(7), ACCEPTED)


async def test_first_of_two_answers_in_a_batch_stays(
    running: ServedLog,
) -> None:
    def completing(name: str, stored_answer: StoredAnswer) -> Submission[None]:
        return submission(
            lambda _: Decision(None, [seen(key(name))], run_answer=(run_id(7), stored_answer)),
            session_stream(key(name)),
        )

    await running.log.submit(asking(answer=None, reserve_run=run_id(7)))
    late = StoredAnswer("error", {"text": "it was stopped"})
    await at_once(running.log, completing("created", ACCEPTED), completing("stopped", late))
    assert await running.commits() == 2
    assert await reserved_by(running) == Reserved(b"the body", run_id(7), ACCEPTED)


async def test_what_is_turned_down_reserves_nothing(running: ServedLog) -> None:
    def no(_: object) -> Decision[None]:
        raise Rejected("no")

    refused, accepted = await at_once(
        running.log, submission(no, reservation=FIRST), asking("taken")
    )
    assert isinstance(refused, Rejected)
    assert accepted.result == "taken"


async def test_answer_without_events_is_kept(running: ServedLog) -> None:
    nothing: Submission[str] = submission(
        lambda _: Decision("nothing", answer=ACCEPTED), reservation=FIRST
    )
    await running.log.submit(observing(key("before")))
    await running.log.submit(nothing)
    assert (await reserved_by(running, nothing)).answer == ACCEPTED
    assert len(await running.events()) == 1
