"""Requests of the sessions of a simulation, and the submissions that record them."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from application.commands.resolve_request import resolve_request
from application.log.envelope import SYSTEM, Actor, Provenance
from application.log.event_log import Submission
from application.log.texts import TextStore
from application.log.unit_of_work import RunCommands, decide_commands, provenance_of
from application.spawn.admit import decide_admission
from application.spawn.request import spawn_command
from benchmarks.history.world.configuration import ALLOWED, CHANNEL, GATEWAY, MODEL
from benchmarks.history.world.fates import FILES, SENT, STAYING, Fate
from benchmarks.history.world.society import Society
from domain.context.attachment_manifest import FileList, ListedFile, render_file_list
from domain.context.thread_binding import Origin, read_origin
from domain.run.commands import RunCommand
from domain.run.facts import Dependency, Ingredient, RespawnFacts, RunOutcome
from domain.run.state import Run
from domain.spawn.admission import policy_of
from domain.spawn.cascade import streams_of
from domain.spawn.decide import SpawnDecision
from domain.spawn.request import AttachmentsVerdict, RequestSpawn, ResolvedSpawn, SpawnRequest
from domain.values.record import run_stream, session_stream

TIMEOUT_SECONDS = 45
_LEAVES = ("researcher", "coder", "summarizer", "steward", None)
_LEAF_WEIGHTS = (28, 34, 22, 6, 10)
_PLANNER_SHARE = 0.14


@dataclass(frozen=True, slots=True)
class Asker:
    """A session that spawns; `run_id` is its own run, `root` and `above` the sessions over it."""

    session_key: str
    agent_id: str
    depth: int
    actor: Actor
    root: str
    run_id: UUID | None = None
    above: str | None = None

    @property
    def streams(self) -> tuple[str, ...]:
        """Return its own streams and that of the session above, which the end of a child may
        change.
        """
        streams = [session_stream(self.session_key)]
        if self.run_id is not None:
            streams.append(run_stream(self.run_id))
        if self.above is not None:
            streams.append(session_stream(self.above))
        return tuple(streams)


@dataclass(slots=True)
class Child:
    """A run as its surroundings know it.

    Attributes:
        begun: Beginning of its system prompt.
        origin: Where it was requested.
    """

    asker: Asker
    fate: Fate
    key: bytes
    run_id: UUID
    session_id: UUID
    task: str
    label: str | None
    preamble: str | None
    origin: Origin = field(default_factory=dict)
    begun: tuple[Ingredient, ...] = ()
    pieces: list[tuple[str, str, str]] = field(default_factory=list)
    children: "list[Child]" = field(default_factory=list)
    outcome: RunOutcome | None = None
    result: str | None = None
    error: str | None = None
    stop_reason: str | None = None
    target: UUID | None = None

    def text_store(self, society: Society) -> TextStore:
        """Return a store for texts of the child's session."""
        return TextStore(self.session_id, self.key, society.ids.event_id)


def new_spawn(
    society: Society,
    asker: Asker,
    fate: Fate,
    *,
    agent_id: str | None = "",
    target: Run | None = None,
) -> tuple[Child, Submission[SpawnDecision]]:
    """Return a request with this fate, and the submission of its admission.

    An empty `agent_id` means any agent. The run depends on the `target`, if given. A refused
    request is sometimes repeated in other words.
    """
    pinned = society.pinned
    request = _request(society, asker, fate, agent_id)
    holder = society.any_holder()
    files = _attached(society) if fate in FILES else None
    command = spawn_command(request, asker.actor, pinned, society.ids, holder, files)
    if target is not None:
        command = replace(command, **_waiting_for(asker, target))
    earlier = society.refused.pop(asker.session_key, None)
    if earlier is not None:
        respawn = RespawnFacts(run_id=earlier, replaced=("agentId", "label", "task"))
        command = replace(command, respawn=respawn)
    child = Child(
        asker=asker,
        fate=fate,
        key=society.ids.content_key(),
        run_id=command.run_id,
        session_id=command.session_id,
        task=command.task,
        label=command.label,
        preamble=command.preamble,
        origin=read_origin(command.origin),
        target=target.run_id if target is not None else None,
    )
    return child, _admission(society, child, command)


def _request(society: Society, asker: Asker, fate: Fate, agent_id: str | None) -> ResolvedSpawn:
    draw, texts = society.random, society.texts
    to = GATEWAY if fate in SENT else "example" if draw.random() < 0.1 else None
    origin = {"channel": CHANNEL, "to": to} if to is not None else {}
    body = {
        "requester": {"sessionKey": asker.session_key, **origin},
        "task": texts.text(1, 6),
        "contextPreamble": texts.text(2, 5) if draw.random() < 0.1 else None,
        "label": texts.label() if draw.random() < 0.6 else None,
        "agentId": _agent(society, asker, fate) if agent_id == "" else agent_id,
        "thread": fate in STAYING,
        "model": MODEL if draw.random() < 0.2 else None,
        "thinking": "extreme" if fate is Fate.NO_SUCH_THINKING else None,
        "runTimeoutSeconds": TIMEOUT_SECONDS if fate is Fate.TIMEOUT else None,
        "mode": "session" if fate in STAYING or fate is Fate.NO_THREAD else "run",
        "cleanup": "delete" if draw.random() < 0.2 else "keep",
        "expectsCompletionMessage": fate is not Fate.UNTOLD,
    }
    request = SpawnRequest.model_validate(body)
    resolved = resolve_request(request, society.pinned.configuration, asker.session_key)
    return replace(resolved, requester_agent_id=asker.agent_id)


def _attached(society: Society) -> AttachmentsVerdict:
    files = []
    for number in range(society.random.randint(1, 4)):
        content = society.random.randbytes(society.random.randint(200, 20_000))
        digest = hashlib.sha256(content).hexdigest()
        files.append(ListedFile(name=f"{number}.bin", bytes=len(content), sha256=digest))
    listed = FileList(files=tuple(files))
    return AttachmentsVerdict(
        count=len(files), total_bytes=listed.total_bytes, manifest=render_file_list(listed)
    )


def _agent(society: Society, asker: Asker, fate: Fate) -> str | None:
    if fate is Fate.NO_AGENT_ID:
        return "No Such Thing!"
    if fate is Fate.NOT_ALLOWED:
        return "reviewer"
    if fate is Fate.NOT_CONFIGURED:
        return ALLOWED[-1]
    limit = society.pinned.configuration.subagent_defaults.max_spawn_depth
    if asker.depth + 1 < limit and society.random.random() < _PLANNER_SHARE:
        return "planner"
    return society.random.choices(_LEAVES, _LEAF_WEIGHTS)[0]


def _waiting_for(asker: Asker, target: Run) -> dict[str, Any]:
    name = target.label or str(target.run_id)
    dependency = Dependency(run_id=target.run_id, name=name, via="dependsOn")
    above = (asker.run_id,) if asker.run_id is not None else ()
    return {"dependencies": (dependency,), "ancestors": above}


def _admission(society: Society, child: Child, command: RequestSpawn) -> Submission[SpawnDecision]:
    asker, pinned = child.asker, society.pinned
    policy = policy_of(pinned.configuration, command.requester_agent_id)

    parent = society.log.runs.get(asker.run_id) if asker.run_id is not None else None
    return Submission(
        command_id=society.ids.event_id(),
        streams=(run_stream(child.run_id), *asker.streams[:2]),
        decide=lambda world: decide_admission(
            world, (command,), (child.key,), policy, society.ids.event_id
        ),
        provenance=Provenance(
            actor=asker.actor,
            correlation=asker.root,
            causation=parent.last_event_id if parent else None,
            run_id=child.run_id,
            traceparent=society.traceparent() if parent is None else None,
            config_revision=pinned.revision,
        ),
    )


def commanded(
    society: Society,
    run: Run,
    commands: Sequence[RunCommand],
    text_store: TextStore | None = None,
    *,
    actor: Actor = SYSTEM,
) -> Submission[None]:
    """Return the submission of commands to a run, decided in turn and recorded with their texts."""
    return Submission(
        command_id=society.ids.event_id(),
        streams=streams_of(run),
        decide=lambda world: decide_commands(world, [RunCommands(run, commands, text_store)]),
        provenance=provenance_of(run, actor),
    )
