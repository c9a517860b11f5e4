"""A claimed run that is launched from its record."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from uuid import UUID, uuid4

from application.execution.launch import LaunchComposer, PreparedLaunch
from application.log.texts import TextStore
from application.log.unit_of_work import UnitOfWork
from application.ports.configurations import PinnedConfiguration
from application.ports.transcripts import Transcripts
from domain.configuration.configuration import Configuration
from domain.run.events import RunEvent, SessionCreated
from domain.run.facts import AttachmentsRequest, Ingredient
from domain.values.record import ContentRef
from infrastructure.outbound.files.workspaces import LocalWorkspaceFolders
from tests.support.builders.facts import fact_of
from tests.support.builders.no_credentials import NoCredentials
from tests.support.builders.run_histories import (
    claimed,
    created,
    prepared,
    queued,
    resolved,
    step_begun,
    step_taken,
)
from tests.support.builders.storytelling import plan, ref, requested, run_id, run_of

KEY = b"k" * 32
RELATIVE = f".openclaw/attachments/{run_id(1)}"
ATTACHED = AttachmentsRequest(
    count=2, total_bytes=30, mount_path_hint="/mnt/x", manifest=ref("manifest")
)


@dataclass
class Record:
    """The log, the texts and the configuration of one run. A text is its own name, save those that
    are told or erased."""

    event: SessionCreated
    told: Mapping[str, str] = field(default_factory=dict)
    erased: tuple[str, ...] = ()
    names: Iterable[str] = ()
    configuration = Configuration.model_validate(
        {"agents": {"defaults": {"runtime": {"type": "scripted"}}}}
    )

    async def text(self, one: ContentRef) -> str | None:
        return (await self.texts((one,))).get(one.id)

    async def texts(
        self, refs: Iterable[ContentRef], *, recent: bool = False
    ) -> Mapping[UUID, str]:
        named = {ref(name).id: self.told.get(name, name) for name in self.names}
        gone = {ref(name).id for name in self.erased}
        return {one.id: named[one.id] for one in refs if one.id not in gone}

    async def at(self, revision: int) -> PinnedConfiguration:
        return PinnedConfiguration(revision, self.configuration, {})

    def mint(self, run: UUID, epoch: int) -> str:
        return f"{run}:{epoch}"


def ingredient(source: str, position: str) -> Ingredient:
    members = {"source": source, "position": position, "content": ref(source)}
    return fact_of(Ingredient, members)


def workspace_in(tmp_path: Path) -> Path:
    """A folder with a place for what was attached."""
    folder = Path(os.path.realpath(tmp_path)) / "work"
    (folder / RELATIVE).mkdir(parents=True)
    return folder


def written(workspace: Path) -> tuple[RunEvent, RunEvent]:
    """The step that wrote what was attached."""
    return (
        step_begun("attachments", root=str(workspace), relative=RELATIVE),
        step_taken(
            "attachments", outcome="written", manifest=ref("manifest"), file_count=2, total_bytes=30
        ),
    )


ALL = (
    ingredient("preamble", "preamble"),
    ingredient("bootstrap:AGENTS.md", "bootstrap"),
    ingredient("bootstrap:TOOLS.md", "bootstrap"),
    ingredient("script:first", "prepend"),
    ingredient("task", "task"),
    ingredient("script:last", "append"),
)


async def launched(
    *steps: RunEvent,
    ingredients: tuple[Ingredient, ...] = ALL,
    told: Mapping[str, str] | None = None,
    erased: tuple[str, ...] = (),
    works_in: Path | None = None,
    source: str = "agent",
    is_recorded: bool = True,
    **asked: Any,
) -> PreparedLaunch:
    place = {"workspace_dir": str(works_in), "workspace_source": source} if works_in else {}
    event = created(plan=plan(**place), ingredients=ingredients)
    run = run_of(requested(**asked), resolved(), prepared(), *steps, event, queued(), claimed())
    names = (*(one.source for one in ALL), "origin")
    record = Record(event, told or {}, erased, names)
    work = cast("UnitOfWork", WorkOfOne(record, record, record))
    return await LaunchComposer(
        work,
        record,
        LocalWorkspaceFolders(),
        NoCredentials(),
        cast("Transcripts", Beginnings()),
        "http://h",
    ).prepare(run, TextStore(run.session_id, KEY, uuid4), is_recorded=is_recorded)


class Beginnings:
    """Writes nothing: the file is called by its session and how much is in it."""

    async def write_fork_snapshot(
        self, run: UUID, *, session_id: UUID, agent_id: str, count: int
    ) -> str:
        assert run == run_id(1)
        return f"/{agent_id}/{session_id}/{count}"


class Unshared:
    """A registry of a family that shares nothing."""

    async def session(self, key_or_id: str, *, at: int | None = None) -> None:
        return None


@dataclass(frozen=True)
class WorkOfOne:
    record: Record
    contents: Record
    configurations: Record
    registry: Unshared = field(default_factory=Unshared)

    async def event(self, kind: type[SessionCreated], run: UUID) -> SessionCreated:
        assert (kind, run) == (SessionCreated, run_id(1))
        return self.record.event
