"""An answer about a position equals the answer given when the log ended there, in any process."""

import math
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, cast
from uuid import UUID

import orjson
import pytest

from application.log.envelope import Actor
from application.log.event_log import Appended, EventLog, Submission
from application.ports.runtimes import TranscriptEntry
from application.queries.access import Caller
from application.queries.errors import QueryError
from application.queries.runs import ListRuns, list_runs
from domain.event_types import EVENT_TYPES
from domain.run.state import Run
from domain.values.record import CONFIG_STREAM, run_id_of, session_key_of
from infrastructure.inbound.http.openapi import document
from infrastructure.outbound.log.rebuild.rebuild import rebuild
from tests.support.builders.configurations import load_values
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.query_services import queries_on
from tests.support.builders.reads_of_the_past import (
    EVERYTHING,
    QUESTIONS,
    GivenAnswer,
    Read,
    ask,
    reads_about,
    reads_about_revisions,
)
from tests.support.builders.storytelling import ROOT
from tests.support.builders.whole_story import tell_everything
from tests.support.memory.served_log import ServedLog
from tests.support.servers.running_log import RunningLog, running_on
from tests.support.servers.server_configurations import ServerConfigurations
from tests.support.tiers import share

SECONDS_MAX = 300
pytestmark = [pytest.mark.server, pytest.mark.long, pytest.mark.timeout(SECONDS_MAX)]

T = TypeVar("T")
OPERATOR = Actor(kind="token", token="operator")
NARROW = Caller(actor=OPERATOR, scopes=frozenset({"read", "content"}), patterns=(ROOT,))
COMMITS_OF_A_REVISION = 12
OTHERS_ASKED_ABOUT = 1
REVISIONS_ASKED = 2
NARROW_SHARE = 0.2
ASKED_SHARE = share() ** 2
"""Share of the questions that are asked."""
BESIDE_THE_LOG = frozenset({"getRunTranscript", "compareRuns"})
"""Operations that show transcripts, which grow while the log stays at a position."""


def test_every_read_with_at_is_asked() -> None:
    taking = {
        operation["operationId"]
        for methods in document()["paths"].values()
        for operation in methods.values()
        if any(parameter["name"] == "at" for parameter in operation.get("parameters", ()))
    }
    # The answer of getMoment names the next event, which may be recorded later. That of getLogHead
    # lists verifications, which have no position: test_log_heads covers it.
    assert taking - {"getMoment", "getLogHead"} == set(QUESTIONS)


def revision_of(number: int) -> Mapping[str, Any]:
    """Return a configuration; no two agree in the values that answers show."""
    return {
        "agents": {
            "defaults": {
                "runtime": {"type": "scripted"},
                "subagents": {
                    "maxConcurrent": 2 + number % 7,
                    "maxChildrenPerAgent": 4 + number % 11,
                    "allowAgents": [["*"], ["main", "other"], []][number % 3],
                },
            },
            "list": [{"id": "main", "default": True}, {"id": f"agent-{number}"}],
        },
        "session": {"mainKey": ["main", "work"][number % 2]},
    }


class WatchedLog:
    """Log that asks, after each append, every question whose answer it may have changed.

    Sometimes another process activates another configuration unseen.
    """

    def __init__(self, running: RunningLog, folder: Path) -> None:
        self.running = running
        self.configurations = ServerConfigurations(running, folder)
        self.services = queries_on(running, folder, self.configurations)
        self.answers: dict[tuple[Read, int, Caller], GivenAnswer] = {}
        self.run_ids: dict[UUID, None] = {}
        self.session_keys: dict[str, None] = {}
        self._die = random.Random(7)
        self._commits = 0
        self._entries: dict[UUID, int] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.running.log, name)

    async def submit(self, submission: Submission[T]) -> Appended[T]:
        before = await self.running.log.head()
        appended = await self.running.log.submit(submission)
        await self.note(before)
        # Recorded after the requests above: it changes none of their answers.
        await self._say_something(appended.runs)
        self._commits += 1
        if self._commits % COMMITS_OF_A_REVISION == 0:
            await self.activate()
        return appended

    async def activate(self) -> None:
        before = await self.running.log.head()
        values = revision_of(self._commits // COMMITS_OF_A_REVISION)
        await self.configurations.activate(load_values(values), OPERATOR)
        await self.note(before)

    async def _say_something(self, runs: Mapping[UUID, Run]) -> None:
        """Write transcript entries between two events."""
        for run_id, run in runs.items():
            if run.stage == "started":
                number = self._entries.get(run_id, 0) + 1
                entry = TranscriptEntry("message", {"role": "assistant", "text": f"no. {number}"})
                transcripts = self.services.transcripts
                if await transcripts.append(run_id, run.epoch, number, [entry]):
                    self._entries[run_id] = number

    async def note(self, before: int) -> None:
        """Ask about everything that changed after a position, and about other things."""
        head = await self.running.log.head()
        streams = [
            event.envelope.stream
            for event in await self.running.log.read(after=before, limit=10_000, until=head)
        ]
        self._learn(streams)
        run_ids = {run_id for stream in streams if (run_id := run_id_of(stream)) is not None}
        keys = {key for stream in streams if (key := session_key_of(stream)) is not None}
        run_ids |= set(self._some(list(self.run_ids)))
        keys |= {"main", ROOT, *self._some(list(self.session_keys))}
        about = reads_about(sorted(keys), sorted(run_ids)) + reads_about_revisions(REVISIONS_ASKED)
        for read in self._die.sample(about, math.ceil(len(about) * ASKED_SHARE)):
            caller = NARROW if self._die.random() < NARROW_SHARE else EVERYTHING
            at = head if read.operation in BESIDE_THE_LOG else None
            answer = await ask(self.services, read, at, caller)
            assert answer.position in (head, None)
            self.answers[read, head, caller] = answer

    def _learn(self, streams: list[str]) -> None:
        for stream in streams:
            run_id, key = run_id_of(stream), session_key_of(stream)
            if run_id is not None:
                self.run_ids[run_id] = None
            elif key is not None:
                self.session_keys[key] = None

    def _some(self, values: list[T]) -> list[T]:
        return self._die.sample(values, min(OTHERS_ASKED_ABOUT, len(values)))

    async def differences(
        self, running: RunningLog, configurations: ServerConfigurations, folder: Path
    ) -> list[str]:
        """Return the answers of this process that differ from the noted ones."""
        services = queries_on(running, folder, configurations)
        different = []
        answers = list(self.answers.items())
        # In the original order, each revision would be cached just before it is needed.
        self._die.shuffle(answers)
        for (read, position, caller), then in answers:
            now = await ask(services, read, position, caller)
            if now != then:
                different.append(f"{read} at {position}\nthen {then}\nnow  {now}")
        return different


class _Story:
    """A log as the tests' stories use it."""

    def __init__(self, log: WatchedLog) -> None:
        self.log = cast("EventLog", log)


async def test_past_answers_are_those_that_were_given(running: RunningLog, tmp_path: Path) -> None:
    watched = WatchedLog(running, tmp_path)
    await watched.activate()
    family = LoggedFamily(cast("EventLog", watched), max_children=4)
    await tell_everything(cast("ServedLog", _Story(watched)), family)
    await watched.activate()
    types = await running.types()
    assert set(types) == {name for name, _ in EVENT_TYPES}
    assert types.count("ConfigurationActivated") > 5
    answers = [answer for answer in watched.answers.values() if b"no. 2" in answer.content]
    assert answers
    assert await running.log.version_of(CONFIG_STREAM, at=len(types)) > 5

    async def require_same(process: RunningLog) -> None:
        # A process that has no revision cached.
        configurations = ServerConfigurations(process, tmp_path)
        differences = await watched.differences(process, configurations, tmp_path)
        assert differences == [], f"{len(differences)} differ, such as\n{differences[0]}"

    await require_same(running)
    assert (await rebuild(running.url)).differing == 0
    async with running_on(running.url) as second_log:
        await require_same(second_log)


async def test_two_processes_answer_alike_around_a_reload(
    running: RunningLog, tmp_path: Path
) -> None:
    watched = WatchedLog(running, tmp_path)
    await watched.activate()
    family = LoggedFamily(cast("EventLog", watched), max_children=4)
    await family.begin("scout")
    async with running_on(running.url) as process:
        deaf = ServerConfigurations(process, tmp_path)
        await deaf.activate(load_values(revision_of(0)), OPERATOR)
        services = queries_on(process, tmp_path, deaf)
        reads = reads_about(["main", ROOT], [family.id("scout")])
        for _ in range(3):
            watched._commits += COMMITS_OF_A_REVISION
            await watched.activate()
            for read in reads:
                here = await ask(watched.services, read, None, EVERYTHING)
                there = await ask(services, read, None, EVERYTHING)
                assert here == there


@pytest.mark.parametrize("has_read_it", [False, True], ids=["another process", "this process"])
async def test_erased_configuration_leaves_the_rest_readable(
    running: RunningLog, tmp_path: Path, has_read_it: bool
) -> None:
    watched = WatchedLog(running, tmp_path)
    await watched.activate()
    family = LoggedFamily(cast("EventLog", watched), max_children=4)
    await family.begin("scout")
    await family.queue("waiting")
    head = await running.log.head()
    services = queries_on(running, tmp_path)
    if has_read_it:
        services = watched.services
        shown = await ask(services, Read("getSession", ROOT), head, EVERYTHING)
        assert orjson.loads(shown.content)["maxChildren"] is not None
    await running.ask("DELETE FROM contents WHERE kind = 'configuration'")

    async def answer(operation: str, about: str = "") -> str:
        return (await ask(services, Read(operation, about), head, EVERYTHING)).content.decode()

    session = orjson.loads(await answer("getSession", ROOT))
    assert (session["maxChildren"], session["activeChildren"]) == (None, 2)
    (lane,) = orjson.loads(await answer("listLanes"))["items"]
    assert lane["width"] is None
    assert [item["waitsFor"] for item in lane["queued"]] == ["a slot"]
    # The meaning of the session's name and its permitted agents are unknown.
    for refused in (await answer("getSession", "main"), await answer("listAgents", ROOT)):
        assert refused.startswith("not_found: ")
        assert "not on record" in refused
    with pytest.raises(QueryError, match=r"give the whole key, as in agent:<agentId>:<session>"):
        await list_runs(services, EVERYTHING, ListRuns(requester="main", at=f"pos:{head}"))
    whole = await list_runs(services, EVERYTHING, ListRuns(requester=ROOT, at=f"pos:{head}"))
    assert len(whole.view.items) == 2
    assert orjson.loads(await answer("getRun", str(family.id("scout"))))["stage"] == "started"


async def test_process_keeps_an_erased_configuration(running: RunningLog, tmp_path: Path) -> None:
    watched = WatchedLog(running, tmp_path)
    await watched.activate()
    await running.ask("DELETE FROM contents WHERE kind = 'configuration'")
    configurations = watched.services.work.configurations
    assert await configurations.at(1) == configurations.current()
    assert not await configurations.is_kept(1)
