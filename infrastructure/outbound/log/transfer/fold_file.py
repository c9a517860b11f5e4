"""Folds the events of a file beside their load, by processes that read the file themselves, and
holds its texts and transcripts against what the events say of them.

The rows go into the tables that a rebuild fills, under the name of a rebuild that nobody would go
on with. Once the events are stored, and by the same transaction, they become those of a rebuild
that has come to the end of the log, which only has to make the indexes and to swap.
"""

import asyncio
import contextlib
import gc
import re
import sys
import threading
import zlib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Self
from uuid import UUID, uuid4

from application.projections.fold import Fold
from domain.values.record import run_id_of, session_key_of
from domain.values.refusals import CorruptHistory
from infrastructure.contract.errors import UserError
from infrastructure.outbound.log.codec.mapper import EventMapper
from infrastructure.outbound.log.process import WorkerProcess, exit_with_holder, send_answer
from infrastructure.outbound.log.read.fold_input import FoldedEvent, FoldPage, TableStates
from infrastructure.outbound.log.rebuild import tables
from infrastructure.outbound.log.rebuild.build import PARTS
from infrastructure.outbound.log.rebuild.fold_pages import PagedFold
from infrastructure.outbound.log.rebuild.fold_part import (
    PAGE_EVENTS,
    STATES_MAX,
    encode_rows,
    store_rows,
)
from infrastructure.outbound.log.rebuild.rebuild import open_rebuild_connection, take_rebuild_lock
from infrastructure.outbound.log.schema.connections import (
    LIMITS,
    WHOLE_TABLE_ANSWER_SECONDS_MAX,
    LogConnection,
    open_connection,
)
from infrastructure.outbound.log.transfer.event_line import (
    EVENT_ID,
    LineFault,
    data_of,
    instant_datetime,
    is_event_line,
    text_of,
    type_offset,
)
from infrastructure.outbound.log.transfer.file_reader import FileFault, FileReader
from infrastructure.outbound.log.transfer.line_file import bounded_lines, open_input
from infrastructure.outbound.log.transfer.spool import Spool
from infrastructure.outbound.log.transfer.text_lines import (
    PARSERS,
    ContentLine,
    EntryLine,
    KeyLine,
    kind_of,
)
from infrastructure.outbound.log.transfer.verify_file import TextCheck
from infrastructure.outbound.log.verify.refold import ReadEvent, require_own_stream
from infrastructure.outbound.log.verify.rows import ReadConnection

_ENDS_COMMIT = b',"commitend":true'
_HASH_NAME = b',"chainhash":"'
_DATA_AFTER = len(_HASH_NAME) + 64 + len('","')
_FOLDED = re.compile(
    rb',"type":"spawnlog\.event\.([A-Za-z]{1,80})","subject":"((?:[^"\\]|\\.)*+)"'
    rb',"time":"([0-9T:.-]{26}Z)","datacontenttype":"application/json","position":"[0-9]{1,19}"'
    rb',"streamversion":([0-9]{1,10}),"typeversion":([0-9]{1,5}),'
)


class FileFolds:
    """The processes that fold one file. The rows are worth nothing until `adopt`. To be closed."""

    def __init__(self, conninfo: str, path: Path) -> None:
        self._conninfo = conninfo
        self._path = path
        self._is_adopted = False
        self._shape = ""

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as resources:
            self._runner = resources.enter_context(asyncio.Runner())
            self._guard: LogConnection = self._run(self._begin(resources))
            resources.callback(self._end)
            order = {"conninfo": self._conninfo, "path_of_file": str(self._path), "parts": PARTS}
            self._processes = [
                resources.enter_context(WorkerProcess(work, {**order, "part": number}))
                for number in range(PARTS)
            ]
            self._resources = resources.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._resources.close()

    def _run(self, work: Any) -> Any:
        return self._runner.run(work)

    async def _begin(self, resources: contextlib.ExitStack) -> LogConnection:
        holding = contextlib.AsyncExitStack()
        guard = await holding.enter_async_context(open_rebuild_connection(self._conninfo))
        resources.callback(lambda: self._run(holding.aclose()))
        await take_rebuild_lock(guard)
        self._shape = await tables.shape(guard)
        await tables.create(guard, f"import {uuid4()}", PARTS)
        return guard

    def _end(self) -> None:
        if not self._is_adopted:
            self._run(tables.drop(self._guard))

    def finish(self, events: int, digest: bytes) -> None:
        """Wait for the processes. `CorruptHistory` when events do not follow from each other,
        `FileFault` when a text or a transcript is not what they refer to, `UserError` when they
        have not read so many events in front of a seal with this hash."""
        faults: list[FileFault] = []
        for process in self._processes:
            answer = process.receive()
            if answer is None:
                raise UserError("a process of the import ended too early; import anew")
            if "corrupt" in answer:
                raise CorruptHistory(answer["corrupt"])
            if "fault" in answer:
                faults.append(FileFault(*answer["fault"]))
            elif "error" in answer:
                raise UserError(answer["error"])
            elif (answer["events"], answer["digest"]) != (events, digest.hex()):
                raise UserError(f"{self._path.name} was changed while it was imported; import anew")
        if faults:
            # Where both look at one text, the one whose event refers to it can say more.
            raise min(faults, key=lambda one: (one.line, one.position is None))

    def adopt(self, connection: ReadConnection, position: int) -> None:
        """Make the rows those of a rebuild up to `position`, in the transaction that is open."""
        connection.execute(
            "UPDATE rebuilding SET position = %s, shape = %s", [position, self._shape]
        )
        self._is_adopted = True


class _FoldedLine(NamedTuple):
    """An event of this part, or None, and whether a transaction ended with it."""

    event: FoldedEvent | None
    ends_commit: bool


class _PartOfFile:
    """The events of a file whose streams are of one part, and then what is beside the events.
    `number` is the line that was read last. To be closed."""

    def __init__(self, path: Path, part: int, parts: int) -> None:
        self._part = part
        self._parts = parts
        self._mapper = EventMapper()
        self._file = open_input(path)
        reader = FileReader(self._file)
        self.header = reader.header
        self.digest = reader.digest
        self._lines = bounded_lines(self._file)
        self._behind: list[bytes] = []
        self.events = 0
        self.number = 1

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def is_own(self, key: bytes) -> bool:
        """Whether what has this key, a stream or an id, is of this part."""
        return zlib.crc32(key) % self._parts == self._part

    def lines(self) -> Iterator[_FoldedLine]:
        """All events of the file."""
        source = self.header.source
        at = type_offset(source)
        for line in self._lines:
            if not is_event_line(line, source):
                self._behind.append(line)
                return
            self.digest.update(line)
            self.number += 1
            self.events += 1
            yield self._folded(line, at)

    def beside(self) -> Iterator[KeyLine | ContentLine | EntryLine]:
        """The lines behind the events, up to the seal, without the entries of runs of other parts.
        Whether they stand in order is for whoever stores them to see."""
        for line in chain(self._behind, self._lines):
            kind = kind_of(line)
            if kind is None or kind not in PARSERS:
                return
            self.digest.update(line)
            self.number += 1
            if kind != "transcript-entry" or self.is_own(b'","subject":"run:' + line[EVENT_ID]):
                yield PARSERS[kind](line, self.header.source)

    def _folded(self, line: bytes, at: int) -> _FoldedLine:
        begins = line.find(b'","subject":"', at)
        stream_ends = line.find(b'","time":"', begins)
        hashed = line.find(_HASH_NAME, stream_ends)
        ends_commit = line.startswith(_ENDS_COMMIT, hashed - len(_ENDS_COMMIT))
        if not self.is_own(line[begins:stream_ends]):
            return _FoldedLine(None, ends_commit)
        found = _FOLDED.match(line, at)
        if found is None:
            raise LineFault("it is not the line of an event in the form of this file")
        kind, subject, recorded, version, type_version = found.groups()
        name, _, member = line[hashed + _DATA_AFTER : -2].partition(b'":')
        stream = text_of(subject)
        event = self._mapper.event(
            stream,
            int(version),
            kind.decode(),
            int(type_version),
            member if name == b"data" else data_of(name, member),
        )
        return _FoldedLine(
            FoldedEvent(
                self.events,
                stream,
                int(version),
                instant_datetime(recorded),
                UUID(line[EVENT_ID].decode()),
                event,
            ),
            ends_commit,
        )


def work(order: dict[str, Any]) -> None:
    """Be such a process."""
    threading.Thread(target=exit_with_holder, daemon=True).start()
    # States have no circles, so they go by themselves; to look for circles costs a third of it.
    gc.set_threshold(500_000, 20, 100)
    try:
        path = Path(order["path_of_file"])
        with (
            contextlib.closing(_PartOfFile(path, order["part"], order["parts"])) as part,
            Spool() as spool,
        ):
            texts = TextCheck(spool, part, part.header.log_id, part.is_own)
            asyncio.run(_fold(part, texts, order["conninfo"]))
            texts.check(part.beside(), part.header)
    except (CorruptHistory, AssertionError) as error:
        send_answer({"corrupt": (str(error) or "an event has no place there")[:2_000]})
        sys.exit(1)
    except FileFault as fault:
        send_answer({"fault": [fault.line, fault.text[:2_000], fault.position]})
        sys.exit(1)
    except (LineFault, UserError) as error:
        send_answer({"error": str(error)[:2_000]})
        sys.exit(1)
    except Exception as error:
        send_answer({"error": f"a process of the import failed: {repr(error)[:500]}"})
        sys.exit(1)
    send_answer({"events": part.events, "digest": part.digest.hexdigest()})


async def _fold(part: _PartOfFile, texts: TextCheck, conninfo: str) -> None:
    # Nobody waits for a page to be on disk: what makes the rows those of a log comes behind.
    settings = f"{LIMITS}; SET statement_timeout = 0; SET synchronous_commit = off"
    async with await open_connection(
        conninfo,
        application="import",
        settings=settings,
        answer_seconds_max=WHOLE_TABLE_ANSWER_SECONDS_MAX,
    ) as connection:
        fold = PagedFold(
            TableStates(connection, "runs_next", "sessions_next"), states_max=STATES_MAX
        )
        after = 0
        events: list[FoldedEvent] = []
        ends: list[int] = []
        for line in part.lines():
            if line.event is not None:
                events.append(line.event)
            if line.ends_commit:
                ends.append(part.events)
                if len(events) >= PAGE_EVENTS:
                    await _store(connection, fold, texts, FoldPage(after, events, ends))
                    after, events, ends = part.events, [], []
        if events:
            await _store(connection, fold, texts, FoldPage(after, events, ends))


async def _store(
    connection: LogConnection, fold: PagedFold, texts: TextCheck, page: FoldPage
) -> None:
    rows = await fold.fold(page, lambda states: texts.note(list(_read_events(page, states))))
    encoded = encode_rows(rows)
    async with connection.transaction():
        await store_rows(connection, rows, encoded)


def _read_events(page: FoldPage, states: Fold) -> Iterator[ReadEvent]:
    """The events with the run or the session that each is of, as it is behind the page."""
    for one in page.events:
        run_id, key = run_id_of(one.stream), session_key_of(one.stream)
        run = states.runs.get(run_id) if run_id is not None else None
        session = states.sessions.get(key) if key is not None else None
        read = ReadEvent(one.position, one.stream, one.event, run, session)
        require_own_stream(read)
        yield read
