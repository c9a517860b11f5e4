"""A short soak; `make soak` runs one for half an hour."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.servers.data_directories import new_place
from tests.support.servers.preloaded import ROOT
from world.soak import CAPS

SECONDS = 20
SECONDS_OF_CAPS = 9
ALL_SECONDS_MAX = 300
CALLS_MIN = 100

pytestmark = [pytest.mark.kill, pytest.mark.nightly, pytest.mark.timeout(ALL_SECONDS_MAX + 30)]


@pytest.fixture
def place() -> Iterator[Path]:
    with new_place() as folder:
        yield folder


def soaked(place: Path, part: str, seconds: float, **options: int) -> str:
    """Return the output of a part of a soak; assert that it finds nothing wrong."""
    given = {"only": part, "seconds": seconds, "seed": 1, "folder": place, **options}
    words = [f"--{name}={value}" for name, value in given.items()]
    soak = subprocess.run(
        [sys.executable, "-m", "world.soak", *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=ALL_SECONDS_MAX,
        check=False,
    )
    assert soak.returncode == 0, soak.stdout
    assert "'server killed': " in soak.stdout
    return soak.stdout


def test_what_callers_were_told_of_servers_that_are_killed_is_what_is_recorded(
    place: Path,
) -> None:
    output = soaked(place, "history", SECONDS, callers=8, servers=2)
    assert "verdict: no contradiction" in output
    assert "'database stopped at once': " in output
    calls = re.search(r"events, (\d+) calls", output)
    assert calls is not None
    assert int(calls[1]) >= CALLS_MIN


def test_caps_are_kept_while_many_spawn_and_no_place_is_lost(place: Path) -> None:
    output = soaked(place, "caps", SECONDS_OF_CAPS)
    assert output.count("verdict: no contradiction") == len(CAPS)
