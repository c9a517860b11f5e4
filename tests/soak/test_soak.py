"""A short soak: what `make soak` does for half an hour."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.servers.data_directories import new_place
from tests.support.servers.preloaded import ROOT

SECONDS = 20
ALL_SECONDS_MAX = 200
CALLS_MIN = 100

pytestmark = [pytest.mark.kill, pytest.mark.nightly, pytest.mark.timeout(ALL_SECONDS_MAX + 30)]


@pytest.fixture
def place() -> Iterator[Path]:
    with new_place() as folder:
        yield folder


def test_what_callers_were_told_of_servers_that_are_killed_is_what_is_recorded(
    place: Path,
) -> None:
    options = {"--seconds": SECONDS, "--callers": 8, "--servers": 2, "--seed": 1, "--folder": place}
    words = [str(word) for pair in options.items() for word in pair]
    soak = subprocess.run(
        [sys.executable, "-m", "world.soak", "--only", "history", *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=ALL_SECONDS_MAX,
        check=False,
    )
    assert soak.returncode == 0, soak.stdout
    assert "verdict: no contradiction" in soak.stdout
    assert "'server killed': " in soak.stdout
    assert "'database stopped at once': " in soak.stdout
    calls = re.search(r"events, (\d+) calls", soak.stdout)
    assert calls is not None
    assert int(calls[1]) >= CALLS_MIN
