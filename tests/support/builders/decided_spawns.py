"""Spawns decided in memory, as a server decides them, without its database and interfaces.

`application` plans the children; all other rules are those of `domain`.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

from application.log.envelope import Actor
from application.ports.configurations import PinnedConfiguration
from application.spawn.request import spawn_command
from domain.context.fork import accepted_note
from domain.event_types import AnyEvent
from domain.plan.child import PlannedChild, RefusedChild
from domain.run.commands import RunCommand
from domain.run.events import MessageReceived, SpawnRequested
from domain.run.plan_facts import PlanFacts
from domain.run.state import Run
from domain.spawn.admission import policy_of
from domain.spawn.decide import SpawnDecision, request_spawns
from domain.spawn.request import ResolvedSpawn
from domain.values.record import ContentRef, run_stream
from domain.values.refusals import Refusal
from domain.values.session_key import agent_id_of, child_key
from domain.what_if.change import Change, WholeConfiguration
from domain.what_if.decide_again import DecidedAgain, ReplayCase, decide_again, is_session_needed
from domain.what_if.record import recorded_decision
from tests.support.builders import run_commands as ask
from tests.support.builders.configurations import PlacedConfigurations
from tests.support.builders.continued_runs import planned as planned_again
from tests.support.builders.family_log import FamilyLog
from tests.support.builders.spawn_plans import plan_spawn, resolved_spawn
from tests.support.builders.storytelling import ref, run_id
from tests.support.models.message_verdicts import judged_message
from tests.support.models.spawn_model import Asked, Told

E = TypeVar("E", bound=AnyEvent)


class Ids:
    """Mints ids by counting."""

    def __init__(self) -> None:
        self._last = 0

    def run_id(self) -> UUID:
        self._last += 1
        return run_id(self._last)

    def event_id(self) -> UUID:
        return self.run_id()

    def content_key(self) -> bytes:
        return bytes(32)


class DecidedSpawns:
    """Log and texts of the spawns. Runs have the names of the test.

    `folder` is the base of relative paths; only planning reads it.
    """

    def __init__(self, folder: Path = Path("/nowhere")) -> None:
        self.log = FamilyLog()
        self.configurations = PlacedConfigurations(folder)
        self._folder = folder
        self._ids = Ids()
        self._texts: dict[ContentRef, str] = {}

    def configure(self, values: Mapping[str, Any]) -> None:
        """Activate this configuration as a new revision."""
        self.configurations.read(values)

    def store(self, kind: str, text: str) -> ContentRef:
        kept = ref(f"{kind}: {text}")
        self._texts[kept] = text
        return kept

    def text(self, kept: ContentRef) -> str:
        return self._texts[kept]

    def run(self, name: str) -> Run:
        return self.log.run(name)

    def only(self, name: str, kind: type[E]) -> E:
        stream = run_stream(self.run(name).run_id)
        found = [event.event for event in self.log.recorded if event.stream == stream]
        (event,) = [event for event in found if isinstance(event, kind)]
        return event

    def spawn(self, name: str, key: str, asked: Asked) -> SpawnDecision:
        pinned, fold = self.configurations.current(), self.log.fold
        request = self._request(key, asked)
        command = spawn_command(request, Actor(kind="token"), pinned, self._ids, "server-1")
        policy = policy_of(pinned.configuration, command.requester_agent_id)
        answered = request_spawns(fold.sessions, fold.runs, [(command, self.store)], policy)
        self.log.names[command.run_id] = name
        self.log.record(answered.changes)
        return answered

    def tell(self, name: str, *commands: RunCommand) -> None:
        self.log.tell(name, *commands)

    def message(self, name: str, last: Run) -> Refusal | None:
        """Continue the session of its last run, with the plan of that run."""
        assert last.child_session_key is not None
        session = self.log.fold.sessions[last.child_session_key]
        pinned, number = self.configurations.current(), self._ids.run_id()
        judged = judged_message(
            self.log.fold,
            number,
            last,
            self.store,
            max_children=pinned.configuration.subagent_defaults.max_children_per_agent,
            planned=planned_again(
                plan=last.plan, role=session.role, control_scope=session.control_scope
            ),
        )
        self.log.names[number] = name
        self.log.record(judged.changes)
        return judged.refusal

    def planned(self, name: str) -> PlannedChild | RefusedChild:
        run = self.run(name)
        argument, folder = run.thinking_argument, self.only(name, SpawnRequested).workspace_argument
        planned = plan_spawn(
            run,
            self._pinned(run),
            self.configurations.workspaces,
            thinking=self.text(argument) if argument else None,
            workspace=self.text(folder) if folder else None,
        )
        if isinstance(planned, PlannedChild) and planned.plan.workspace_source == "agent":
            # The step of the preparation that comes next.
            Path(str(planned.plan.workspace_dir)).mkdir(parents=True, exist_ok=True)
        return planned

    def create(self, name: str, planned: PlannedChild) -> str:
        """Open the child's session and queue its run; gives its key."""
        run = self.run(name)
        assert run.agent_id is not None
        key = child_key(run.agent_id, str(run.run_id))
        prepare = ask.prepare(run.epoch, child_session_key=key, agent_id=run.agent_id)
        create = ask.create(
            run.epoch,
            depth=run.depth,
            max_depth=self._pinned(run).configuration.subagent_defaults.max_spawn_depth,
            role=planned.capabilities.role,
            control_scope=planned.capabilities.control_scope,
            plan=planned.plan,
            warnings=planned.warnings,
            note=accepted_note(run.options, run.requester),
            facts=planned.facts,
        )
        self.tell(name, prepare, create)
        return key

    def refuse(
        self, name: str, rule: str, status: str, text: str, facts: PlanFacts | None = None
    ) -> None:
        """Let the preparation fail; `facts` are the inputs of its plan."""
        kept = self.store("refusal", text)
        epoch = self.run(name).epoch
        self.tell(name, ask.refuse(epoch, rule=rule, status=status, text=kept, facts=facts))

    def decided_again(self, name: str) -> DecidedAgain:
        """Return the what-if of a run's recorded decision under its own revision."""
        run = self.run(name)
        stream = run_stream(run.run_id)
        steps = [event for event in self.log.recorded if event.stream == stream]
        request = steps[0].event
        before = None
        if isinstance(request, MessageReceived):
            before = self.log.run_as_of(request.continues, steps[0].stamp.position - 1)
        pinned = self._pinned(run)
        whole = WholeConfiguration(pinned.configuration, pinned.redacted)
        record = recorded_decision(steps, before=before)
        question = ReplayCase(record=record, change=Change(whole, whole))
        if is_session_needed(question):
            session = self.log.session_as_of(run.requester.session_key, steps[0].stamp.position)
            question = question.changed({"requester": session})
        texts = {ref.id: text for ref, text in self._texts.items()}
        return decide_again(question, texts)

    def _pinned(self, run: Run) -> PinnedConfiguration:
        return self.configurations.pinned(run.config_revision)

    def _request(self, key: str, request: Asked) -> ResolvedSpawn:
        known, own = self.log.fold.sessions.get(key), agent_id_of(key)
        requester = {
            "workspaceDir": str(self._folder / request.folder) if request.folder else None,
            "sandboxed": request.is_boxed,
            "activeModel": request.active_model,
            "activeThinking": request.active_thinking,
        }
        resolved = resolved_spawn(
            key,
            requester=requester,
            agentId=request.agent_id,
            model=request.model,
            thinking=request.thinking,
            runTimeoutSeconds=request.seconds,
            mode=request.mode,
            thread=request.thread,
            sandbox=request.sandbox,
        )
        return replace(
            resolved,
            requester_agent_id=known.agent_id if known else request.poses_as or own,
            asserts_agent=request.poses_as not in (None, own),
        )


def told_of(refusal: Refusal | None) -> Told | None:
    if refusal is None:
        return None
    return Told(refusal.rule, refusal.status, refusal.text, refusal.current, refusal.limit)
