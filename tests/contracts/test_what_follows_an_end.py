"""Events recorded with the end of a run equal those recorded after it, exactly."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import count, pairwise
from pathlib import Path
from typing import Any, cast

import pytest

from application.delivery.announce import Announcer
from application.delivery.archive import Archiver
from application.delivery.transcript_files import TranscriptFileWriter
from application.execution.end import RunFinalizer
from application.log.event_log import Submission
from application.ports.hooks import HookClient
from application.ports.runtimes import RuntimeEnd, TranscriptEntry
from domain.delivery.output_notes import OutputNote, note_body
from domain.delivery.transcript import UsageEntry
from domain.run.facts import SpawnOptions
from domain.run.state import Run
from domain.values.refusals import Rejected
from tests.support.builders import run_commands as ask
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.storytelling import plan
from tests.support.builders.submissions import at_once, failing_with, key, observing
from tests.support.memory.served_log import ServedLog, work_on
from tests.support.tiers import nightly_but

Prepared = Callable[[LoggedFamily, str], Awaitable[None]]


class Behind(Announcer):
    """Announcer that records after the end, and not with it."""

    async def follow_up(self, run: Run, *_: Any, **__: Any) -> Submission[None] | None:
        return None


class Server:
    """Services that end, announce and archive runs; `announcer` says when."""

    def __init__(self, running: ServedLog, folder: Path, announcer: type[Announcer]) -> None:
        self.work = work_on(running)
        transcripts = self.transcripts = running.transcripts(folder / "transcripts")
        files = TranscriptFileWriter(self.work.registry, transcripts, running.coordination())
        self.announcing = announcer(self.work, cast("HookClient", None), transcripts)
        self.archiving = Archiver(self.work, transcripts, files)
        self.ending = RunFinalizer(self.work, transcripts, files, self.announcing, self.archiving)

    async def write(self, run: Run, notes: Sequence[OutputNote]) -> None:
        entries = [TranscriptEntry("progress", note_body(note)) for note in notes]
        last = (await self.transcripts.written_after(run.run_id, after=0)).last
        assert not entries or await self.transcripts.append(
            run.run_id, run.epoch, last + 1, entries
        )

    async def end(self, run: Run, end: RuntimeEnd) -> Run:
        await self.ending.end(run, end)
        await self.announcing.announce(run.run_id)
        now = await self.work.run(run.run_id)
        if now.archive_at is not None and now.announced_at == now.archive_at:
            await self.archiving.archive(run.run_id)
        return await self.work.run(run.run_id)


PRICED = plan(
    archive_after_minutes=60, cost_input_usd_per_million=2.0, cost_output_usd_per_million=9.0
)


async def plainly(family: LoggedFamily, name: str, by: str = "main", **options: Any) -> None:
    await family.spawn(name, by, **options)
    await family.create(name, plan=PRICED, warnings=("no such skill",))
    await family.execute(name)


async def with_a_child(family: LoggedFamily, name: str) -> None:
    await plainly(family, name)
    await family.begin(f"{name} below", name)
    await family.end(f"{name} below")
    await family.announce(f"{name} below")


async def with_a_child_at_work(family: LoggedFamily, name: str) -> None:
    await plainly(family, name)
    await family.begin(f"{name} below", name)


async def below_one_that_is_over(family: LoggedFamily, name: str) -> None:
    await plainly(family, f"{name} above")
    await plainly(family, name, f"{name} above")
    await family.end(f"{name} above")


async def stopped(family: LoggedFamily, name: str) -> None:
    await plainly(family, name)
    await family.tell(name, ask.stop())


def spawned(**options: Any) -> Prepared:
    async def spawn(family: LoggedFamily, name: str) -> None:
        await plainly(family, name, **options)

    return spawn


LIVES: Mapping[str, Prepared] = {
    "plain": plainly,
    "deleted": spawned(options=SpawnOptions(cleanup="delete")),
    "lasting": spawned(options=SpawnOptions(mode="session"), thread=True),
    "nobody waits": spawned(options=SpawnOptions(expects_completion_message=False)),
    "a child was below it": with_a_child,
    "a child is below it": with_a_child_at_work,
    "the one above it is over": below_one_that_is_over,
    "stopped": stopped,
}
NOTES = (
    OutputNote("warning", "warning: 2 lines are no entries"),
    OutputNote("stderr", "standard error:\nmodel not found"),
)
ENDS: Mapping[str, RuntimeEnd] = {
    "said": RuntimeEnd(outcome="success", reason="exit", exit_code=0, result=" found\0 \ud800 \n"),
    "blank": RuntimeEnd(outcome="success", reason="exit", exit_code=0, result=" \n"),
    "nothing": RuntimeEnd(outcome="success", reason="exit", exit_code=0),
    "silent": RuntimeEnd(outcome="success", reason="exit", exit_code=0, result="NO_REPLY"),
    "long": RuntimeEnd(outcome="success", reason="exit", exit_code=0, result="ä" * 200_000),
    "failed": RuntimeEnd(
        outcome="error", reason="exit", exit_code=3, error="x" * 20_000 + "\n\ny", result="half"
    ),
    "late": RuntimeEnd(outcome="timeout", reason="timeout", result="half"),
    "killed": RuntimeEnd(outcome="stopped", reason="stopped", error="by somebody"),
    "counted": RuntimeEnd(
        outcome="success",
        reason="exit",
        exit_code=0,
        result="cheap",
        usages=(UsageEntry(1_234, 56, None),),
    ),
    "noted": RuntimeEnd(outcome="success", reason="exit", exit_code=0, notes=NOTES),
    "answered and noted": RuntimeEnd(
        outcome="success", reason="exit", exit_code=0, result="r", notes=NOTES
    ),
    "failed and noted": RuntimeEnd(
        outcome="error", reason="exit", exit_code=3, error="exited: tail", notes=NOTES
    ),
    "noisy": RuntimeEnd(
        outcome="success",
        reason="exit",
        exit_code=0,
        notes=(OutputNote("stderr", "standard error:\n" + "x" * 8_000 + " model not found"),),
    ),
}


AT_ONCE = ("plain", "deleted", "lasting", "nobody waits", "the one above it is over")


async def told(
    running: ServedLog, server: Server, family: LoggedFamily, run: Run, folder: Path
) -> Any:
    """Return the record of a life from its end on, without ids, positions and times."""
    own = {family.id(name): name for name in family._ids}
    events = [event for event in await running.events() if event.envelope.provenance.run_id in own]
    seen = {event.envelope.event_id: number for number, event in enumerate(events)}
    found = []
    for item in events:
        head, source = item.envelope, item.envelope.provenance
        assert source.causation is None or source.causation in seen
        about = own[source.run_id] if source.run_id is not None else None
        cause = seen.get(source.causation) if source.causation else None
        left = head.append_last - head.position
        found.append((head.type, head.version, about, cause, source.actor, left))
    commands = [event.envelope.command_id for event in events]
    changes = [command != following for command, following in pairwise(commands)]
    text = None
    if run.inbox is not None and run.inbox.text is not None:
        text = await server.work.contents.text(run.inbox.text)
        assert text is not None
        for name in (run.child_session_key or "", str(run.session_id), str(run.run_id)):
            text = text.replace(name, "…")
        text = re.sub(r"runtime (n/a|\d+s)", "runtime …", text.replace(str(folder), "…"))
    told_of = (run.inbox.disposition, run.inbox.reason, run.inbox.status) if run.inbox else ()
    return found, changes, told_of, text, run.stage


@pytest.mark.parametrize("life", nightly_but(LIVES, ["plain", "a child is below it", "stopped"]))
async def test_announcement_is_alike_with_end_and_behind(
    running: ServedLog, tmp_path: Path, life: str
) -> None:
    numbers = count(1, 100)
    for end in ENDS:
        records, commits = [], []
        for announcer in (Announcer, Behind):
            first = next(numbers)
            folder = tmp_path / str(first)
            root = f"agent:main:root-{first:04}"
            family = LoggedFamily(running.log, root=root, first=first, max_spawn_depth=5)
            server = Server(running, folder, announcer)
            await LIVES[life](family, "scout")
            await server.write(family.run("scout"), ENDS[end].notes)
            before = await running.commits()
            run = await server.end(family.run("scout"), ENDS[end])
            commits.append(await running.commits() - before)
            records.append(await told(running, server, family, run, folder))
        assert records[0] == records[1], end
        assert commits[0] == (1 if life in AT_ONCE and end != "killed" else commits[1]), end


@pytest.mark.parametrize("trouble", [Rejected("no"), KeyError("broken")])
async def test_failed_follow_up_ends_the_row(running: ServedLog, trouble: Exception) -> None:
    following = (observing(key(2)), failing_with(trouble), observing(key(3)))
    answers = await at_once(
        running.log, observing(key(1))._replace(follow_ups=following), observing(key(4))
    )
    assert [answer.result for answer in answers] == [(key(1),), (key(4),)]
    events = [event.envelope for event in await running.events()]
    assert [event.stream for event in events] == [f"session:{key(number)}" for number in (1, 2, 4)]
    assert [event.append_last for event in events] == [1, 2, 3]
    assert len({event.command_id for event in events}) == 3
    assert await running.commits() == 1
