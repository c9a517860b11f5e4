"""Generated histories, and the state at each of their positions by brute force."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast
from uuid import UUID

import orjson
import pytest

from application.log.envelope import RecordedEvent
from application.queries.services import QueryServices
from application.queries.views.run import RunMetadataView, RunView, summary_texts, view_of_run
from application.queries.views.view import Answer, View
from benchmarks.generate import generate
from benchmarks.history import shifts
from domain.event_types import ConfigurationActivated
from domain.run.events import RunEvent
from domain.run.evolve import evolve as evolve_run
from domain.run.state import Run
from domain.session.events import SessionEvent
from domain.session.state import Session
from domain.session.state import evolve as evolve_session
from domain.values.record import run_id_of, session_key_of
from tests.support.builders.query_services import queries_on
from tests.support.builders.reads_of_the_past import EVERYTHING
from tests.support.servers.databases import Databases
from tests.support.servers.running_log import RunningLog
from tests.support.tiers import stride

V = TypeVar("V", bound=View)
EVENTS = 1_000
WINDOW = range(EVENTS // 2, EVENTS // 2 + 40)
EVERY_OTHER = 7
PREVIEW_CHARACTERS = 200
OVER = ("ended", "announced", "archived", "refused")
SETTLED = ("announced", "archived", "refused")
"""Stages of a run that is over, and of one that no other run waits for."""


class Seed(NamedTuple):
    """Definition of a history. With fewer events per shift it has several configurations."""

    number: int
    shift_events: int


SEEDS = (Seed(3, EVENTS), Seed(40, EVENTS), Seed(32, EVENTS // 2))
"""Seeds that together have every type of event."""


class Reached(NamedTuple):
    """Position at which a run reached a stage."""

    stage: str
    position: int
    at: datetime


@dataclass(frozen=True, slots=True, repr=False)
class Past:
    """State at one position, with all `states` of each run, and the event recorded there."""

    position: int
    recorded: RecordedEvent | None
    runs: Mapping[UUID, Run]
    sessions: Mapping[str, Session]
    stages: Mapping[UUID, tuple[Reached, ...]]
    revision: int

    @property
    def by_creation(self) -> list[Run]:
        return sorted(self.runs.values(), key=lambda run: run.created_position)

    @property
    def at(self) -> str:
        return f"pos:{self.position}"

    @property
    def head(self) -> RecordedEvent:
        assert self.recorded is not None
        return self.recorded


# Without a `repr`, because asyncio shows the one of a task's result.
@dataclass(frozen=True, slots=True, repr=False)
class GeneratedPast:
    """A history with its services, its pasts from position 0 on, all its texts by their ids, and
    the configurations by their revisions."""

    services: QueryServices
    pasts: Sequence[Past]
    texts: Mapping[UUID, str]
    configurations: Mapping[int, Any]

    @property
    def last(self) -> int:
        return len(self.pasts) - 1

    @property
    def some(self) -> Iterator[Past]:
        """Yield every past of a part (every other in `make test`), and some of the rest."""
        window = WINDOW[:: stride(2)]
        for past in self.pasts[1:]:
            if past.position in window or past.position % (EVERY_OTHER * stride(2)) == 0:
                yield past

    def events(self, after: int, until: int) -> list[RecordedEvent]:
        """Return the events after a position, up to another one."""
        return [past.head for past in self.pasts[after + 1 : until + 1]]

    async def view(self, query: Callable[..., Awaitable[Answer[V]]], *about: Any) -> V:
        return (await query(self.services, EVERYTHING, *about)).view

    def previews(self, run: Run) -> Mapping[UUID, str]:
        return {
            ref.id: self.texts[ref.id][:PREVIEW_CHARACTERS]
            for ref in summary_texts(run)
            if ref.id in self.texts
        }

    def subagents(self, past: Past) -> Any:
        return self.configurations[past.revision]["agents"]["defaults"]["subagents"]


def json_of(view: View) -> Any:
    return orjson.loads(view.json_bytes())


def instant(at: datetime | None) -> str | None:
    return orjson.loads(orjson.dumps(at, option=orjson.OPT_UTC_Z)) if at is not None else None


def generated_url(databases: Databases, seed: Seed) -> str:
    url = databases.create()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shifts, "SHIFT_EVENTS", seed.shift_events)
        generate(url, events=EVENTS, seed=seed.number)
    return url


_folded: dict[str, Sequence[Past]] = {}


async def past_of(running: RunningLog, folder: Path) -> GeneratedPast:
    if running.url not in _folded:
        _folded[running.url] = folded(await running.events())
    texts = dict(await running.ask("SELECT content_id, body FROM contents"))
    activated = [
        past.head.event
        for past in _folded[running.url][1:]
        if isinstance(past.head.event, ConfigurationActivated)
    ]
    return GeneratedPast(
        services=queries_on(running, folder),
        pasts=_folded[running.url],
        texts=texts,
        configurations={item.revision: orjson.loads(texts[item.content.id]) for item in activated},
    )


def folded(events: Sequence[RecordedEvent]) -> list[Past]:
    """Return the state before the first event, and after each event."""
    pasts = [Past(0, None, {}, {}, {}, 0)]
    for recorded in events:
        before, envelope, event = pasts[-1], recorded.envelope, recorded.event
        run_id, key = run_id_of(envelope.stream), session_key_of(envelope.stream)
        runs, sessions, stages = before.runs, before.sessions, before.stages
        revision = before.revision
        if isinstance(event, ConfigurationActivated):
            revision = event.revision
        elif run_id is not None:
            run = evolve_run(runs.get(run_id), cast("RunEvent", event), envelope.stamp)
            reached = stages.get(run_id, ())
            if not reached or reached[-1].stage != run.stage:
                reached += (Reached(run.stage, envelope.position, envelope.recorded_at),)
            runs, stages = {**runs, run_id: run}, {**stages, run_id: reached}
        elif key is not None:
            session = evolve_session(sessions.get(key), cast("SessionEvent", event), envelope.stamp)
            sessions = {**sessions, key: session}
        pasts.append(Past(envelope.position, recorded, runs, sessions, stages, revision))
    return pasts


def run_of(
    past: GeneratedPast, now: Past, run: Run, form: type[RunView | RunMetadataView] = RunView
) -> dict[str, Any]:
    """Return a run with all its texts, or in a form that has the beginnings of some."""
    respawns = [
        item.run_id
        for item in now.by_creation
        if item.respawn is not None and item.respawn.run_id == run.run_id
    ]
    texts = past.texts if form is RunView else past.previews(run)
    stages: Any = now.stages[run.run_id]
    return dict(json_of(view_of_run(form, run, texts, stages, respawns)))


def status_of(run: Run) -> str:
    if run.stage in ("ended", "announced", "archived"):
        return {"success": "done", "error": "failed"}.get(str(run.outcome), str(run.outcome))
    waits = run.waits_for is not None and run.stage == "session-created"
    names = {"queued": "queued", "started": "running", "refused": "refused"}
    return "waiting" if waits else names.get(run.stage, "preparing")


def stages_of(now: Past, run_id: UUID) -> list[dict[str, Any]]:
    return [
        {"stage": stage.stage, "position": stage.position, "at": instant(stage.at)}
        for stage in now.stages[run_id]
    ]
