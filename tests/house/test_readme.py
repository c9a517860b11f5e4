"""The README says what is so: the life it shows, its floor plan, its tour."""

import os
import re
import signal
import subprocess
import tomllib
from pathlib import Path

import pytest

from domain.event_types import EVENT_TYPES
from domain.run.lifecycle import LIFECYCLE, RunStage
from tests.support.servers.preloaded_command import command_folder

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
FIRST_SCREEN_LINES = 50
TOUR_SECONDS_MAX = 110


def section(heading: str) -> str:
    _, _, rest = README.partition(f"\n## {heading}\n")
    assert rest, f"README.md has no section {heading}"
    return rest.partition("\n## ")[0]


def folders_in_order(container: str) -> list[str]:
    """The folders of a floor as the import contracts order them, upper ones first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    (layers,) = (
        contract["layers"]
        for contract in settings["tool"]["importlinter"]["contracts"]
        if contract.get("containers") == [container]
    )
    return [name for layer in layers for name in layer.split(" | ")]


def test_the_first_screen_shows_one_life_and_two_commands() -> None:
    first = "\n".join(README.splitlines()[:FIRST_SCREEN_LINES])
    assert re.findall(r"^\$ (make \w+)", first, re.M) == ["make demo", "make run"]
    told = re.findall(r"^ +\d+  [\d:.]+ +\+[\d.]+s  (\w+)", first, re.M)
    stage: RunStage = "unborn"
    for name in told:
        (event,) = (kind for kind in LIFECYCLE[stage] if kind.__name__ == name)
        stage = LIFECYCLE[stage][event]
    assert stage == "announced"
    assert set(told) <= {name for name, _ in EVENT_TYPES}


def test_the_floor_plan_has_the_folders_of_each_floor_in_their_order() -> None:
    floors = dict(re.findall(r"^(domain|application|infrastructure)/\n((?:  .*\n)+)", README, re.M))
    for floor, lines in floors.items():
        shown = re.findall(r"^  (\w+)(?:/|\.py) ", lines, re.M)
        assert shown == folders_in_order(floor), floor
    assert set(floors) == {"domain", "application", "infrastructure"}


@pytest.mark.server
def test_the_tour_can_be_copied_and_pasted(tmp_path: Path) -> None:
    told = section("Tour") + section("Time travel in five commands")
    blocks = re.findall(r"^```sh\n(.*?)^```$", told, re.M | re.S)
    script = "set -eu\n" + "\n".join(blocks)
    plain = {name: text for name, text in os.environ.items() if not name.startswith("SPAWNLOG_")}
    installed = '"$PWD/.venv/bin:$PATH"'
    assert installed in script
    with (
        command_folder() as commands,
        subprocess.Popen(
            ["sh", "-c", script.replace(installed, f'"{commands}:$PATH"')],
            cwd=ROOT,
            env={**plain, "TMPDIR": str(tmp_path)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as tour,
    ):
        try:
            said, _ = tour.communicate(timeout=TOUR_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            os.killpg(tour.pid, signal.SIGTERM)
            said, _ = tour.communicate(timeout=10)
            pytest.fail(f"the tour takes more than {TOUR_SECONDS_MAX} s; it said:\n{said}")
    assert tour.returncode == 0, said
    for expected in (
        "data/harbour.txt: 9 lines, 80 words",
        '"low tide": 3 of it in 3 files',
        "refused: exit status 3",
        "failed: exit status 1",
        "newly-allowed: ",
        "slept for 1 s",
        "changed: 1",
    ):
        assert expected in said, said
    assert list(tmp_path.iterdir()) == []
