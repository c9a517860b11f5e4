"""A spawn as cases describe it, from the arguments of the tool to the plan of the child.

Each step is that of a server.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

from application.commands.resolve_request import resolve_request
from application.log.envelope import Actor
from application.ports.configurations import PinnedConfiguration
from application.spawn.request import spawn_command
from domain.configuration.configuration import Configuration
from domain.plan.child import PlannedChild, RefusedChild
from domain.plan.eligibility import ELIGIBILITY
from domain.plan.request import ChosenWorkspace, PlanRequest, shape_of
from domain.run.events import SpawnRequested
from domain.run.evolve import initial_run
from domain.run.plan_facts import WorkspaceFacts
from domain.run.state import Run
from domain.session.events import ChildAdmitted
from domain.session.role import KnownDepth, depth_of
from domain.session.state import Session
from domain.spawn.admission import policy_of
from domain.spawn.decide import SpawnDecision, request_spawns
from domain.spawn.request import ResolvedSpawn, SpawnRequest
from domain.values.record import ContentRef
from domain.values.refusals import Refusal
from domain.values.session_key import agent_id_of, canonical_session_key
from infrastructure.inbound.mcp.tools.spawn_arguments import ToolSpawn, read_tool_arguments
from tests.support.builders.spawn_plans import plan_child
from tests.support.builders.storytelling import observed, ref, run_id, session_of, stamp
from tests.support.cases.cases import Given

ADMIN = Actor(kind="token", token="admin")
SUBAGENTS = "agents.defaults.subagents"


def configuration(given: Given, *agents: str) -> Configuration:
    """Return the configuration of a case, whose keys have dots; those without are in
    `agents.defaults.subagents`.

    The agents of the case are listed with a runtime. No other agent is run here.
    """
    tree: dict[str, Any] = {}
    limits = {name: given[name] for name in ("maxSpawnDepth",) if name in given}
    for path, value in {**(given.get("config") or {}), **limits}.items():
        *sections, name = (path if "." in path else f"{SUBAGENTS}.{path}").split(".")
        at = tree
        for section in sections:
            at = at.setdefault(section, {})
        at[name] = json.loads(json.dumps(value))
    section = tree.setdefault("agents", {})
    section.setdefault("defaults", {})["runtime"] = {"type": "command", "command": ["cat"]}
    listed = section.setdefault("list", [])
    ids = {agent["id"] for agent in listed}
    listed += [{"id": agent} for agent in dict.fromkeys(agents) if agent not in ids]
    return Configuration.model_validate(tree)


class MintedIds:
    """Ids and keys as a server mints them."""

    def run_id(self) -> UUID:
        return uuid4()

    def event_id(self) -> UUID:
        return uuid4()

    def content_key(self) -> bytes:
        return bytes(32)


class Texts:
    """The texts beside a log."""

    def __init__(self) -> None:
        self._texts: dict[UUID, str] = {}

    def store(self, _kind: str, text: str) -> ContentRef:
        """Store a text."""
        reference = ref(text)
        self._texts[reference.id] = text
        return reference

    def of(self, reference: ContentRef | None) -> str | None:
        """Return the stored text, or None without a reference."""
        return self._texts[reference.id] if reference is not None else None


class CaseSpawn:
    """One decided request. `run` is its result, which may be a refusal."""

    def __init__(self, given: Given) -> None:
        spawn = read_tool_arguments(given["args"])
        assert isinstance(spawn, ToolSpawn)
        store = given.get("store") or {}
        self.key = canonical_session_key(
            resolved(given.get("requesterSessionKey") or "main", store)
        )
        agent_id = agent_id_of(self.key)
        self.configuration = configuration(given, agent_id, *asked_for(spawn))
        self.texts = Texts()
        pinned = PinnedConfiguration(1, self.configuration, {})
        request = _request(spawn, self.key, agent_id)
        command = spawn_command(request, ADMIN, pinned, MintedIds(), "server-1")
        known = _on_record(given, self.key, store)
        sessions: dict[str, Session] = {self.key: known} if known else {}
        policy = policy_of(pinned.configuration, agent_id)
        self.answered: SpawnDecision = request_spawns(
            sessions, {}, [(command, self.texts.store)], policy
        )
        self.requested = next(
            event for _, event in self.answered.changes if isinstance(event, SpawnRequested)
        )
        self.run: Run = initial_run(self.requested, stamp(1))

    @property
    def refusal(self) -> Refusal | None:
        """Why it was not permitted."""
        return self.answered.refusal

    def planned(self) -> PlannedChild | RefusedChild:
        """Return the plan of an admitted child, in the agent's folder, or its refusal."""
        assert self.refusal is None
        assert self.run.agent_id is not None
        agent = self.configuration.effective_agent(self.run.agent_id)
        workspace = WorkspaceFacts(source="agent", recorded=None, chosen="/w")
        request = PlanRequest(
            shape=shape_of(self.run),
            agent=agent,
            requester_sandboxed=self.run.requester.sandboxed,
            thinking_argument=self.texts.of(self.run.thinking_argument),
            chosen=ChosenWorkspace(workspace),
        )
        return plan_child(ELIGIBILITY, request)

    @property
    def admitted(self) -> int:
        """Return the number of admitted children. No other child reaches a runtime."""
        return sum(isinstance(event, ChildAdmitted) for _, event in self.answered.changes)


def resolved(spelling: str, store: Mapping[str, Any]) -> str:
    """Return the key of the recorded session with this id, else the spelling."""
    return next(
        (key for key, value in store.items() if value.get("sessionId") == spelling), spelling
    )


def depth_in(store: Mapping[str, Any], key: str) -> int:
    """Return the depth of a session in a store."""

    def known(text: str) -> KnownDepth | None:
        entry = store.get(text)
        return (
            None if entry is None else KnownDepth(entry.get("spawnDepth"), entry.get("spawnedBy"))
        )

    return depth_of(key, known).depth


def asked_for(spawn: ToolSpawn) -> list[str]:
    """Return the requested agent if it can be configured, else none."""
    given = spawn.agent_id
    return [given] if given and given.replace("-", "").replace("_", "").isalnum() else []


def _request(spawn: ToolSpawn, key: str, agent_id: str) -> ResolvedSpawn:
    resolved = resolve_request(SpawnRequest.model_validate(spawn.body(key)), Configuration(), key)
    return replace(resolved, requester_agent_id=agent_id)


def _on_record(given: Given, key: str, store: Mapping[str, Any]) -> Session | None:
    """Return the requester's session, a new one if the case has none."""
    active = given.get("activeChildren", 0) + sum(
        run["requesterSessionKey"] == key and run["endedAt"] is None
        for run in given.get("registry") or ()
    )
    depth = given.get("requesterDepth")
    if depth is None:
        if not store and not active:
            return None
        depth = depth_in(store, key)
    seen = observed(session_key=key, agent_id=agent_id_of(key), depth=depth, root_session_key=key)
    counted = tuple(run_id(9000 + number) for number in range(active))
    return session_of(seen).changed({"counted": counted})
