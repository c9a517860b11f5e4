"""Process with its own log on a faulty connection, and callers that write until standard input
ends.

`python -m world.storm.log_writer ORDER`, where ORDER is a `WriterOrder` as JSON. Answers to callers
go into `notes`, events seen by a follower of its own tail into `seen`. It prints `ready` when
faults may begin and, at the end, the faults of its connection as JSON.
"""

import asyncio
import json
import random
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from application.log.event_log import LogUnavailableError
from infrastructure.outbound.log.append import writer
from infrastructure.outbound.log.read import tail
from infrastructure.outbound.transcripts.transcripts import StoredTranscripts
from tests.support.faults.followers import following
from tests.support.servers.running_log import RunningLog, running_on
from world.storm.contested_runs import ContestedRuns
from world.storm.faulty_line import Weather, faulty_line
from world.storm.noting_log import Notebook, NotingLog
from world.storm.random_acts import RandomActs

CALLERS = 4
BEGINS = (0.9, 0.9, 0.9, 0.1, 0.1, 0.1)
"""Probability, for each holder, that it starts its own run instead of taking one over."""
RUNS_MAX = 100_000
RECONNECT_PAUSE_SECONDS = 0.05
WEATHER = Weather(
    lost_commit=0.08, late_commit=0.3, late_seconds_max=0.02, cut_question=0.01, cut_answer=0.0005
)


@dataclass(frozen=True)
class WriterOrder:
    """Order for a writer process. `seed` and the writer's `number` seed its random choices."""

    url: str
    number: int
    seed: int
    notes: str
    seen: str

    def text(self) -> str:
        """Return the argument of the command."""
        return json.dumps(asdict(self))


class WriterProcess:
    """The callers of one process."""

    def __init__(self, order: WriterOrder, running: RunningLog, notebook: Notebook) -> None:
        self._order = order
        self._running = running
        self._notebook = notebook
        self._stop = asyncio.Event()

    async def work(self) -> None:
        """Write and read the head until standard input ends."""
        asking = [self._ask(number) for number in range(CALLERS)]
        holding = [self._hold(number, begins) for number, begins in enumerate(BEGINS)]
        working = asyncio.gather(*asking, *holding, self._look())
        await asyncio.to_thread(sys.stdin.read)
        self._stop.set()
        await working

    def _die(self, of: str) -> random.Random:
        return random.Random(f"{self._order.seed} {self._order.number} {of}")

    def _log(self, name: str) -> NotingLog:
        return NotingLog(self._running.log, self._notebook, name)

    async def _ask(self, number: int) -> None:
        name = f"w{self._order.number}-c{number}"
        acts = RandomActs(self._log(name), self._notebook, name, self._die(name))
        while not self._stop.is_set():
            await acts.next()
            await asyncio.sleep(0)

    async def _hold(self, number: int, begins: float) -> None:
        name = f"w{self._order.number}-h{number}"
        runs = ContestedRuns(
            self._log(name),
            self._running.pool,
            StoredTranscripts(self._running.pool, Path("/nowhere")),
            self._notebook,
            name=name,
            first=1 + RUNS_MAX * (self._order.number * len(BEGINS) + number),
            begins=begins,
            die=self._die(name),
        )
        while not self._stop.is_set():
            await runs.next()
            await asyncio.sleep(0)

    async def _look(self) -> None:
        """Read the head repeatedly, for the comparison with the promised positions."""
        die = self._die("look")
        while not self._stop.is_set():
            began = time.monotonic_ns()
            try:
                head = await self._running.log.head()
                last = await self._running.log.read(after=max(head - 1, 0), limit=1, until=head)
            except LogUnavailableError:
                await asyncio.sleep(die.uniform(0, RECONNECT_PAUSE_SECONDS))
                continue
            ids = [str(event.envelope.event_id) for event in last]
            self._notebook.note(
                "looked", began=began, ended=time.monotonic_ns(), head=head, last=ids
            )
            await asyncio.sleep(die.uniform(0, RECONNECT_PAUSE_SECONDS))


async def main(order: WriterOrder) -> dict[str, Any]:
    """Write until standard input ends. Return the number of faults of each kind."""
    notebook = Notebook(Path(order.notes))
    seed = f"{order.seed} {order.number} line"
    async with faulty_line(order.url, seed, WEATHER) as line:
        async with running_on(order.url, connect=line.connect) as running:
            async with following(running.tail) as follower:
                print("ready", flush=True)
                line.break_loose()
                await WriterProcess(order, running, notebook).work()
                # The judges find events that it did not see.
                with suppress(AssertionError):
                    await follower.has(await running.log.head())
                follower.write_down(Path(order.seen))
    notebook.close()
    return dict(line.faults)


if __name__ == "__main__":
    writer.RECONNECT_PAUSE_SECONDS = RECONNECT_PAUSE_SECONDS
    tail.RECONNECT_PAUSE_SECONDS = RECONNECT_PAUSE_SECONDS
    print(json.dumps(asyncio.run(main(WriterOrder(**json.loads(sys.argv[1]))))))
