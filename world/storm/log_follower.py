"""Process that follows a log by position from its start, on a connection that breaks.

`python -m world.storm.log_follower ORDER`, where ORDER is a `FollowerOrder` as JSON. It writes
position, event id and chain hash of each event into `notes`, one event per line, and ends after the
position that its standard input names.
"""

import asyncio
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from infrastructure.outbound.log.read import tail
from infrastructure.outbound.log.read.tail import LogTail
from tests.support.faults.followers import following
from world.storm.faulty_line import Weather, faulty_line

RECONNECT_PAUSE_SECONDS = 0.05
WEATHER = Weather(cut_question=0.01, cut_answer=0.0005)
DEAF_CHANNEL = "nobody_speaks_here"


@dataclass(frozen=True)
class FollowerOrder:
    """Order for a follower process. `channel` is the log's notification channel; with any other, it
    only polls."""

    url: str
    channel: str
    poll_seconds: float
    seed: int
    notes: str

    def text(self) -> str:
        """Return the argument of the command."""
        return json.dumps(asdict(self))


async def main(order: FollowerOrder) -> None:
    """Follow the log to the position that standard input names."""
    async with faulty_line(order.url, f"{order.seed} {order.channel}", WEATHER) as line:
        tailed = LogTail(line.connect, channel=order.channel)
        await tailed.start()
        try:
            async with following(tailed) as follower:
                print("ready", flush=True)
                line.break_loose()
                until = int(await asyncio.to_thread(sys.stdin.readline))
                try:
                    await follower.has(until)
                finally:
                    follower.write_down(Path(order.notes))
            if tailed.failure is not None:
                raise tailed.failure
        finally:
            await tailed.close()


if __name__ == "__main__":
    tail.RECONNECT_PAUSE_SECONDS = RECONNECT_PAUSE_SECONDS
    order = FollowerOrder(**json.loads(sys.argv[1]))
    tail.POLL_SECONDS = order.poll_seconds
    asyncio.run(main(order))
