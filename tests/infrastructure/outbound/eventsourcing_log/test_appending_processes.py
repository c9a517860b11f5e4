"""Several processes append to one log."""

import os
import select
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from uuid import UUID

import pytest

from tests.support.builders.application_logs import whole_log
from tests.support.builders.eventsourcing_environments import environment_of, own_schema
from tests.support.builders.harbours import Harbours

ROOT = Path(__file__).parents[4]
PROGRAM = "tests.support.builders.arriving_program"
LINE_SECONDS_MAX = 60.0
ARRIVALS = 30


class Arriving:
    """A process that lets ships arrive, once it is told to begin."""

    def __init__(self, env: dict[str, str], harbour: UUID, prefix: str, count: int) -> None:
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.support.builders.arriving_program",
                str(harbour),
                prefix,
                str(count),
            ],
            cwd=ROOT,
            env=os.environ | env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> "Arriving":
        return self

    def __exit__(self, *_: object) -> None:
        with self._process:
            self._process.kill()

    def is_ready(self) -> bool:
        assert self._process.stdout is not None
        assert select.select([self._process.stdout], [], [], LINE_SECONDS_MAX)[0], "no line came"
        return self._process.stdout.readline() == "ready\n"

    def begin(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def positions(self) -> list[int]:
        told, _ = self._process.communicate(timeout=LINE_SECONDS_MAX)
        assert self._process.returncode == 0
        return [int(line) for line in told.split()]


@pytest.mark.kill
def test_two_processes_that_append_to_one_stream_leave_no_gap(shared_database_url: str) -> None:
    schema = own_schema()
    env = environment_of(shared_database_url, schema)
    with Harbours(env=env) as harbours:
        harbour = harbours.open_harbour("Bremen")
        with ExitStack() as stack:
            both = [
                stack.enter_context(Arriving(env, harbour, name, ARRIVALS)) for name in ("a", "b")
            ]
            assert all(one.is_ready() for one in both)
            for one in both:
                one.begin()
            told = [one.positions() for one in both]
            assert [sorted(one) for one in told] == told
            assert sorted([1, *told[0], *told[1]]) == list(range(1, 2 * ARRIVALS + 2))
        ships = harbours.ships(harbour)
        assert sorted(ships) == sorted(
            f"{name}-{n}" for name in ("a", "b") for n in range(ARRIVALS)
        )
    assert len(whole_log(shared_database_url, schema)) == 2 * ARRIVALS + 1
