"""Cases of accepted spawns: their record, and the answer to the caller."""

import json
from collections.abc import Mapping

import pytest

from application.commands.resolve_request import resolve_request
from domain.context.fork import accepted_note
from domain.run.events import RunStarted, SessionCreated
from domain.run.facts import SUBAGENT_LANE, Requester, SpawnOptions
from domain.spawn.request import ResolvedSpawn, SpawnRequest
from domain.values.record import ContentRef
from tests.support.builders import run_commands as ask
from tests.support.builders.family_log import keep
from tests.support.builders.storytelling import ROOT
from tests.support.cases.cases import Answer, Case, Given, Runner, cases_of
from tests.support.cases.comparison import Whole, hold
from tests.support.cases.families import CaseFamily
from tests.support.cases.spawns import configuration

ORDER: Mapping[type[object], str] = {
    SessionCreated: "session store writes",
    RunStarted: "agent call",
}


def spawned(given: Given) -> Answer:
    """Return the note for a mode, or the record of a request over HTTP, whose `requester` is the
    context of the case; `order` is that of the events.
    """
    if "mode" in given:
        requester = Requester(
            session_key=ROOT,
            display_key=ROOT,
            agent_id="main",
            depth=0,
            root_session_key=ROOT,
            sandboxed=False,
        )
        return {"note": accepted_note(SpawnOptions(mode=given["mode"]), requester)}
    resolved = asked(given)
    request, origin = resolved.request, resolved.request.requester.origin
    (task,) = resolved.tasks
    family = CaseFamily()
    answered = family.answer(
        "child",
        "main",
        requester_key=resolved.requester_key,
        label=request.label,
        task=task,
        origin=origin,
        thread=request.thread,
        workspace_argument=request.requester.workspace_dir,
        options=request.options(model=request.model, thinking=request.thinking),
    )
    family.record(answered.changes)
    if answered.refusal is None:
        started(family)
    run = family.run("child")
    texts = Kept(task=task, origin=origin)
    addresses = Whole(json.loads(texts.of(run.requester.origin)))
    registered = {
        "requesterSessionKey": run.requester.session_key,
        "requesterOrigin": addresses,
        "task": texts.of(run.task),
        "cleanup": run.options.cleanup,
        "model": run.options.model,
        "expectsCompletionMessage": run.options.expects_completion_message,
        "spawnMode": run.options.mode,
    }
    return {
        "status": answered.refusal.status if answered.refusal else "accepted",
        "registered": registered,
        "registered.requesterOrigin": addresses,
        "lifecycle_event": {"parentSessionKey": family.session("child").spawned_by},
        "agent_call": {"lane": run.lane},
        "order": [
            ORDER[type(event.event)] for event in family.recorded if type(event.event) in ORDER
        ],
    }


def asked(given: Given) -> ResolvedSpawn:
    """Return the request of a case as the interface accepts it."""
    context = dict(given["ctx"])
    key = context.pop("agentSessionKey", "main")
    requester = {"sessionKey": key, **context}
    body = SpawnRequest.model_validate(
        {"requester": requester, "task": "t", **given.get("args", {})}
    )
    return resolve_request(body, configuration({}, "main"))


def started(family: CaseFamily) -> None:
    """Prepare the child and start its runtime, in the lane that a server chooses."""
    run = family.run("child")
    family.tell(
        "child",
        ask.resolve(run.epoch),
        ask.prepare(run.epoch, child_session_key=family.key("child")),
        ask.create(run.epoch, depth=run.depth, lane=SUBAGENT_LANE),
    )
    family.tell("child", ask.claim())
    family.tell("child", ask.start(family.run("child").epoch))


class Kept:
    """The texts that were kept of one request."""

    def __init__(self, **texts: str | None) -> None:
        self._texts = {keep(kind, text).id: text for kind, text in texts.items() if text}

    def of(self, reference: ContentRef | None) -> str:
        """Return the text of a reference."""
        assert reference is not None
        return self._texts[reference.id]


RUNNERS: Mapping[str, Runner] = {"spawn": spawned}


@pytest.mark.parametrize("case", cases_of(RUNNERS))
def test_a_spawn_is_recorded_as_the_case_says(case: Case) -> None:
    hold(RUNNERS[case.area](case.given), case)
