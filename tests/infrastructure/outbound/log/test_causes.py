"""Each event names its cause, as it is known under the lock."""

from application.log.envelope import Actor, Envelope
from tests.support.builders import run_commands as ask
from tests.support.builders.logged_family import LoggedFamily
from tests.support.servers.running_log import RunningLog

OPERATOR = Actor(kind="token", token="operator")


async def last(running: RunningLog, type_name: str) -> Envelope:
    """Return the newest event of a type."""
    return [event.envelope for event in await running.events() if event.envelope.type == type_name][
        -1
    ]


async def test_end_of_stopped_run_names_the_wish(running: RunningLog, family: LoggedFamily) -> None:
    await family.begin("scout")
    before = family.run("scout")
    await family.tell("scout", ask.stop(reason=None), actor=OPERATOR)
    wish = await last(running, "StopRequested")
    # A request from outside has no event as its cause.
    assert (wish.provenance.actor.token, wish.provenance.causation) == ("operator", None)
    # Who ends it has not heard of the wish: the lock knows.
    family.runs[before.run_id] = before
    await family.end("scout", outcome="stopped", reason="stopped", exit_code=None, result=None)
    assert (await last(running, "RunEnded")).provenance.causation == wish.event_id
