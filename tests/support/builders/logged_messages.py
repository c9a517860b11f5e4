"""Messages to the sessions of a family in a real log."""

from typing import Any

from uuid_utils.compat import uuid7

from application.log.envelope import Provenance
from application.log.event_log import Appended, Decision, DecisionContext, StoredAnswer, Submission
from application.log.texts import TextStore
from application.session.continue_session import decide_message
from domain.plan.child import RefusedChild
from domain.run.events import ContinuationPlanned
from domain.run.facts import Ingredient
from domain.run.state import Run
from domain.spawn.continuation import Message
from domain.values.record import run_stream, session_stream
from tests.support.builders.continued_runs import planned as planned_again
from tests.support.builders.logged_family import LoggedFamily, content_key_of


def last_of(family: LoggedFamily, name: str) -> Run:
    """Return the newest run of this run's session that the family knows."""
    newest = family.sessions[family.key(name)].run_id
    assert newest is not None
    return family.runs[newest]


async def send(
    family: LoggedFamily,
    name: str,
    to: str,
    *,
    planned: ContinuationPlanned | RefusedChild | None = None,
    **changes: Any,
) -> Appended[StoredAnswer]:
    """Continue the session of a run; the run that the message becomes gets this name."""
    last = last_of(family, to)
    above = family.sessions[last.requester.session_key].run_id
    number = family.call(name)
    key = content_key_of(last.session_id)
    assert last.child_session_key is not None

    def decide(world: DecisionContext) -> Decision[StoredAnswer]:
        text_store = TextStore(last.session_id, key, uuid7)
        plain = {"by": "admin", "config_revision": 1, "max_children": family.policy.max_children}
        text = text_store.store("message", "and then?")
        message = Message(**{**plain, "run_id": number, "text": text, **changes})
        ingredient = Ingredient(source="message", position="task", content=text)
        plan = planned or planned_again(ingredients=(ingredient,))
        return decide_message(world, message, last, plan, text_store)

    streams = (
        run_stream(number),
        run_stream(last.run_id),
        session_stream(last.child_session_key),
        session_stream(last.requester.session_key),
        *((run_stream(above),) if above is not None else ()),
    )
    source = Provenance(
        correlation=last.requester.root_session_key, run_id=number, config_revision=1
    )
    return family.heard(
        await family.log.submit(
            Submission(command_id=uuid7(), streams=streams, decide=decide, provenance=source)
        )
    )


async def finish(family: LoggedFamily, *names: str) -> None:
    for name in names:
        await family.end(name)
        await family.announce(name)


async def go_on(family: LoggedFamily, name: str, to: str, **changes: Any) -> None:
    """Send a message, and let its run execute, end and be announced."""
    await send(family, name, to, **changes)
    await family.execute(name)
    await finish(family, name)
