"""Run writers and followers as processes, inject faults, and record each answer and each seen
event.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import UUID

from application.log.envelope import Envelope, RecordedEvent
from infrastructure.outbound.log.codec.mapper import EventMapper
from infrastructure.outbound.log.read.events import COLUMNS, recorded_event
from infrastructure.outbound.log.schema.followers import channel_of
from tests.support.servers.embedded_servers import PROJECT
from world.checker.history import Call, History, event_of_record
from world.storm.contested_runs import CAP
from world.storm.log_follower import DEAF_CHANNEL, FollowerOrder
from world.storm.log_writer import WriterOrder
from world.storm.stormy_database import StormyDatabase, stormy_database

FAULTS = 24
RESTARTS_AT = (8, 16)
EVENTS_BETWEEN_FAULTS = 20
END_SECONDS_MAX = 40
ENOUGH = {'"kind": "ended"': 2, "LostClaim": 2, "SeenBefore": 2}
"""Minimum numbers of certain notes before a storm may end."""
CLOCK_SECONDS = (-7200.0, -60.0, -0.5, 0.0, 2.0)
OWN = "own tail of w"
POLLS = {"notified": 1.0, "deaf": 0.1}
_EVENTS = f"SELECT {COLUMNS} FROM events ORDER BY position"
_SPANS = (
    "SELECT 'run:' || run_id, version, from_position, to_position FROM runs"
    " UNION ALL SELECT 'session:' || session_key, version, from_position, to_position"
    " FROM sessions ORDER BY 1, 3"
)


@dataclass(frozen=True, slots=True)
class Row:
    """A stored event, with its stored bytes."""

    recorded: RecordedEvent
    state: bytes

    @property
    def envelope(self) -> Envelope:
        return self.recorded.envelope

    @property
    def holder(self) -> str | None:
        """Return the token of the actor that recorded it."""
        return self.envelope.provenance.actor.token


@dataclass
class Record:
    """Result of a storm.

    `notes` are those of the writers, `seen` those of the followers. `spans` are the rows of each
    stream: version, first position, and end.
    """

    writers: int
    notes: list[dict[str, Any]] = field(default_factory=list)
    seen: dict[str, list[tuple[int, str, str]]] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    head: tuple[Any, ...] = ()
    commits: list[tuple[int, Any]] = field(default_factory=list)
    spans: dict[str, list[tuple[int, int, int]]] = field(default_factory=dict)
    entries: list[tuple[UUID, dict[str, Any]]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Return the notes of one kind."""
        return [note for note in self.notes if note["kind"] == kind]

    def told(self, *outcomes: str) -> list[dict[str, Any]]:
        """Return the answers to callers, with one of these outcomes or any."""
        return [note for note in self.of("told") if not outcomes or note["outcome"] in outcomes]

    @cached_property
    def history(self) -> History:
        """Return the recorded commands and the reads of the head, for the checker."""
        answers = [("command", note, note["position"]) for note in self.told("recorded")]
        looks = [("look", note, note["head"]) for note in self.of("looked")]
        calls = tuple(
            Call(
                caller=note.get("caller", kind),
                number=number,
                kind=kind,
                began=note["began"],
                ended=note["ended"],
                server=0,
                label=note.get("command"),
                status=200,
                position=position,
            )
            for number, (kind, note, position) in enumerate((*answers, *looks), start=1)
        )
        return History(calls, tuple(event_of_record(row.recorded) for row in self.rows), {}, CAP)

    def by_command(self) -> dict[str, list[Row]]:
        """Return the events of each command, in order."""
        found: dict[str, list[Row]] = {}
        for row in self.rows:
            found.setdefault(str(row.envelope.command_id), []).append(row)
        return found


class Storm:
    """A storm, from its first process to its last."""

    def __init__(self, database: StormyDatabase, folder: Path, writers: int, seed: int) -> None:
        self._database = database
        self._folder = folder
        self._seed = seed
        self._die = random.Random(seed)
        self._writers: list[subprocess.Popen[str]] = []
        self._followers: list[subprocess.Popen[str]] = []
        self.record = Record(writers)

    def blow(self) -> Record:
        """Run the whole storm."""
        try:
            self._followers = [self._follower(name) for name in POLLS]
            self._wait_until_ready(self._followers)
            self._writers = [self._writer(number) for number in range(self.record.writers)]
            self._wait_until_ready(self._writers)
            for number in range(FAULTS):
                self._database.grow(EVENTS_BETWEEN_FAULTS, self._require_alive)
                self._fault(number)
            for _ in range(2 * FAULTS):
                self._database.grow(EVENTS_BETWEEN_FAULTS, self._require_alive)
                if self._is_enough():
                    break
            self._end()
        finally:
            for process in (*self._writers, *self._followers):
                process.kill()
                process.communicate()
        self._collect()
        return self.record

    def _wait_until_ready(self, processes: Sequence[subprocess.Popen[str]]) -> None:
        """Wait until all processes are ready, before any fault."""
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n", self._words()

    def _fault(self, number: int) -> None:
        if number in RESTARTS_AT:
            self._database.stop_at_once()
            self.record.faults["restart"] += 1
        elif number % 2:
            self._database.set_clock(self._die.choice(CLOCK_SECONDS))
            self.record.faults["clock"] += 1
        else:
            ended = self._database.end_a_backend(self._die.randrange(1000))
            self.record.faults["ended backend"] += ended

    def _end(self) -> None:
        """End all processes: first the writers, then the followers."""
        for writer in self._writers:
            output, _ = writer.communicate(timeout=END_SECONDS_MAX)
            assert writer.returncode == 0, f"a writer has failed; {self._words()}"
            self.record.faults.update(json.loads(output))
        head = f"{self._database.head()}\n"
        for follower in self._followers:
            follower.communicate(head, timeout=END_SECONDS_MAX)

    def _is_enough(self) -> bool:
        """Return True if enough random events happened to be judged."""
        notes = "".join(path.read_text("utf-8") for path in self._folder.glob("writer-*.jsonl"))
        return all(notes.count(words) >= least for words, least in ENOUGH.items())

    def _require_alive(self) -> None:
        dead = [
            writer.args
            for writer in (*self._writers, *self._followers)
            if writer.poll() is not None
        ]
        assert not dead, f"{dead}\n{self._words()}"

    def _words(self) -> str:
        return "\n".join(path.read_text("utf-8")[-3000:] for path in self._folder.glob("*.log"))

    def _writer(self, number: int) -> subprocess.Popen[str]:
        notes = str(self._folder / f"writer-{number}.jsonl")
        seen = str(self._folder / f"{OWN}{number}.txt")
        order = WriterOrder(self._database.url, number, self._seed, notes, seen)
        return self._start("world.storm.log_writer", order.text(), f"writer-{number}")

    def _follower(self, name: str) -> subprocess.Popen[str]:
        channel = channel_of("public") if name == "notified" else DEAF_CHANNEL
        notes = str(self._folder / f"{name}.txt")
        order = FollowerOrder(self._database.url, channel, POLLS[name], self._seed, notes)
        return self._start("world.storm.log_follower", order.text(), name)

    def _start(self, module: str, order: str, name: str) -> subprocess.Popen[str]:
        with (self._folder / f"{name}.log").open("w", encoding="utf-8") as log:
            return subprocess.Popen(
                [sys.executable, "-m", module, order],
                cwd=PROJECT,
                # A killed process leaves its socket file in TMPDIR.
                env={**os.environ, "TMPDIR": str(self._folder)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def _collect(self) -> None:
        record, ask = self.record, self._database.ask
        for path in sorted(self._folder.glob("writer-*.jsonl")):
            record.notes += [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        for path in sorted(self._folder.glob("*.txt")):
            split = [line.split() for line in path.read_text("utf-8").splitlines()]
            record.seen[path.stem] = [(int(item[0]), item[1], item[2]) for item in split]
        mapper = EventMapper()
        record.rows = [Row(recorded_event(row, mapper), bytes(row[-1])) for row in ask(_EVENTS)]
        (record.head,) = ask("SELECT position, recorded_at, chain_hash FROM log_head")
        record.commits = ask("SELECT last_position, recorded_at FROM commits ORDER BY 1")
        for stream, *span in ask(_SPANS):
            record.spans.setdefault(stream, []).append((span[0], span[1], span[2]))
        entries = ask("SELECT run_id, body FROM transcript_entries ORDER BY run_id, sequence")
        record.entries = [(run_id, json.loads(body)) for run_id, body in entries]
        record.keys = [row[0] for row in ask("SELECT key FROM idempotency")]


@contextmanager
def storm(writers: int, seed: int) -> Iterator[Record]:
    """Yield the record of a storm with this number of writers. Prints the seed, to repeat it."""
    print(f"storm: {writers} writers, seed {seed}")
    with tempfile.TemporaryDirectory(prefix="spawnlog-storm-", dir="/tmp") as folder:
        with stormy_database() as database:
            yield Storm(database, Path(folder), writers, seed).blow()
