"""Each event names the one that led to it, as it is known under the lock."""

from application.log.envelope import Actor, Envelope
from domain.run.commands import StopRun
from tests.support.builders import run_commands as ask
from tests.support.builders.logged_family import LoggedFamily
from tests.support.servers.running_log import RunningLog

OPERATOR = Actor(kind="token", token="operator")


async def last(running: RunningLog, type_name: str) -> Envelope:
    """The newest event of a type."""
    return [one.envelope for one in await running.events() if one.envelope.type == type_name][-1]


def stop() -> StopRun:
    return ask.stop(reason=None)


async def test_what_an_outside_caller_asks_for_has_no_event_as_its_cause(
    running: RunningLog, family: LoggedFamily
) -> None:
    await family.begin("scout")
    await family.tell("scout", stop(), actor=OPERATOR)
    wish = (await last(running, "StopRequested")).provenance
    assert (wish.actor.token, wish.causation) == ("operator", None)


async def test_what_the_service_does_by_itself_follows_from_the_event_before(
    running: RunningLog, family: LoggedFamily
) -> None:
    await family.begin("scout")
    started = await last(running, "RunStarted")
    await family.end("scout")
    assert (await last(running, "RunEnded")).provenance.causation == started.event_id


async def test_the_end_of_a_run_that_was_told_to_stop_names_the_wish(
    running: RunningLog, family: LoggedFamily
) -> None:
    """Also when the one who ends it has not heard of the wish: the lock knows."""
    await family.begin("scout")
    before = family.run("scout")
    await family.tell("scout", stop(), actor=OPERATOR)
    family.runs[before.run_id] = before
    await family.end("scout", outcome="stopped", reason="stopped", exit_code=None, result=None)
    wish = await last(running, "StopRequested")
    assert (await last(running, "RunEnded")).provenance.causation == wish.event_id


async def test_that_all_below_are_settled_follows_from_the_last_of_them(
    running: RunningLog, family: LoggedFamily
) -> None:
    await family.begin("scout")
    for name in ("first", "second"):
        await family.begin(name, "scout")
    await family.end("scout")
    for name in ("first", "second"):
        await family.end(name)
        await family.announce(name)
    settled, child = await last(running, "DescendantsSettled"), await last(running, "ChildSettled")
    assert settled.provenance.causation == child.event_id
    assert settled.provenance.run_id == family.id("scout")
    assert child.provenance.run_id == family.id("second")
