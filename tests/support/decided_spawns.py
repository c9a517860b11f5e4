"""Spawns decided in memory: what a server does with each, without its database and its doors.

The order in which a request that was permitted is judged further is that of `application`; each
rule is that of `domain`.
"""

from collections.abc import Mapping
from typing import Any, TypeVar, cast
from uuid import UUID

from application.admitting import policy_of
from application.envelope import Actor
from application.ports.configurations import PinnedConfiguration
from application.spawn_request import SpawnRequest, command_of
from domain.admission import Refusal, agent_known
from domain.capabilities import capabilities_at
from domain.configuration.configuration import Configuration
from domain.content import ContentRef
from domain.event_types import AnyEvent
from domain.run.commands import RunCommand
from domain.run.facts import SpawnOptions
from domain.run.state import Run
from domain.session_key import agent_id_of
from domain.spawn_decision import SpawnAnswered, request_spawn
from domain.spawn_mode import effective_cleanup, effective_mode
from domain.spawn_notes import accepted_note
from domain.stream import run_stream
from domain.thinking import ThinkingPlan, plan_thinking
from tests.support import run_commands as ask
from tests.support.family_log import FamilyLog
from tests.support.spawn_model import Asked
from tests.support.storytelling import plan, ref, run_id

E = TypeVar("E", bound=AnyEvent)


class Ids:
    """Mints ids by counting."""

    def __init__(self) -> None:
        self._last = 0

    def run_id(self) -> UUID:
        """The next one."""
        self._last += 1
        return run_id(self._last)

    def event_id(self) -> UUID:
        """The next one."""
        return self.run_id()

    def content_key(self) -> bytes:
        """Always the same: nobody looks at it."""
        return bytes(32)


class DecidedSpawns:
    """The log of it, and the texts that were kept beside it. Runs have the names of the test."""

    def __init__(self) -> None:
        self.log = FamilyLog()
        self._ids = Ids()
        self._pinned: list[PinnedConfiguration] = []
        self._texts: dict[ContentRef, str] = {}

    def configure(self, values: Mapping[str, Any]) -> None:
        """From now on this is the configuration, under a revision of its own."""
        configuration = Configuration.model_validate(values)
        self._pinned.append(PinnedConfiguration(len(self._pinned) + 1, configuration, {}))

    def keep(self, kind: str, text: str) -> ContentRef:
        """Keep a text."""
        kept = ref(f"{kind}: {text}")
        self._texts[kept] = text
        return kept

    def text(self, kept: ContentRef) -> str:
        """A text that was kept."""
        return self._texts[kept]

    def run(self, name: str) -> Run:
        """A run as it is now."""
        return self.log.run(name)

    def only(self, name: str, kind: type[E]) -> E:
        """The one event of this type of a run."""
        stream = run_stream(self.run(name).run_id)
        found = [one.event for one in self.log.recorded if one.stream == stream]
        (event,) = [event for event in found if isinstance(event, kind)]
        return event

    def spawn(self, name: str, key: str, asked: Asked) -> SpawnAnswered:
        """A session asks for a child, under the present configuration."""
        pinned, fold = self._pinned[-1], self.log.fold
        known = fold.sessions.get(key)
        mode = effective_mode(cast("Any", asked.mode), thread=asked.thread)
        request = SpawnRequest(
            requester_key=key,
            requester_display_key=key,
            requester_agent_id=known.agent_id if known else agent_id_of(key),
            origin=None,
            task="look around",
            preamble=None,
            label=None,
            agent_id=asked.agent_id,
            thread=asked.thread,
            options=SpawnOptions(
                thinking=asked.thinking, mode=mode, cleanup=effective_cleanup(None, mode)
            ),
        )
        command = command_of(request, Actor(kind="token"), pinned, self._ids, "server-1")
        policy = policy_of(pinned, command.requester_agent_id)
        answered = request_spawn(fold.sessions, fold.runs, command, policy, self.keep)
        self.log.names[command.run_id] = name
        self.log.record(answered.changes)
        return answered

    def tell(self, name: str, *commands: RunCommand) -> None:
        """Ask something of a run."""
        self.log.tell(name, *commands)

    def unfit(self, name: str) -> Refusal | None:
        """Why a spawn cannot be prepared, if it cannot."""
        run = self.run(name)
        assert run.agent_id is not None
        configured = self._configuration(run).agent_ids()
        known = agent_known(run.agent_id, configured, requested_agent_id=run.requested_agent_id)
        if isinstance(known, Refusal):
            return known
        error = self._thinking(run).error
        return Refusal(rule="thinking", status="error", text=error) if error else None

    def create(self, name: str) -> str:
        """Open the child's session and queue its run; gives its key."""
        run = self.run(name)
        depth_max = self._configuration(run).subagent_defaults.max_spawn_depth
        key = f"agent:{run.agent_id}:subagent:{run.run_id}"
        may = capabilities_at(run.depth, depth_max)
        prepare = ask.prepare(run.epoch, child_session_key=key, agent_id=run.agent_id)
        create = ask.create(
            run.epoch,
            depth=run.depth,
            max_depth=depth_max,
            role=may.role,
            control_scope=may.control_scope,
            plan=plan(thinking=self._thinking(run).level),
            note=accepted_note(run.options.mode, run.requester.session_key),
        )
        self.tell(name, prepare, create)
        return key

    def refuse(self, name: str, rule: str, status: str, text: str) -> None:
        """The preparation fails."""
        kept = self.keep("refusal", text)
        epoch = self.run(name).epoch
        self.tell(name, ask.refuse(epoch, rule=rule, status=status, text=kept))

    def _configuration(self, run: Run) -> Configuration:
        return self._pinned[run.config_revision - 1].configuration

    def _thinking(self, run: Run) -> ThinkingPlan:
        configuration = self._configuration(run)
        agent = configuration.agent(run.agent_id or "")
        argument = run.thinking_argument
        return plan_thinking(
            argument=self.text(argument) if argument else run.options.thinking,
            agent_subagents=agent.subagents.thinking if agent else None,
            defaults_subagents=configuration.subagent_defaults.thinking,
        )
