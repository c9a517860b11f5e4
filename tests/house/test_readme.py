"""The README and the pages for newcomers: the run that they show, and the commands to paste."""

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
from tests.support.tiers import nightly_but

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
README_LINES_MAX = 200
FIRST_SCREEN_LINES = 50
TOUR_SECONDS_MAX = 110
REFUSED_AND_FAILED = ("refused: exit status 3", "failed: exit status 1", "newly-allowed: ")
SAID = {
    "README.md": ("data/harbour.txt: 9 lines, 80 words", "slept for 1 s", *REFUSED_AND_FAILED),
    "docs/quick-start.md": (
        "I was asked: Write a haiku about harbours",
        "refused: exit status 3",
        "newly-allowed: 1",
        "I was asked: Review the haiku",
    ),
    "docs/cookbook.md": (
        "identity→main (winner)",
        "slept for 1 s",
        'I share first: "data/harbour.txt: 9 lines, 80 words, 424 bytes"',
        "searcher: $0.00",
        "no differences; keep this head",
        "spawnlog_spawns_refused_total",
    ),
    "docs/users-and-tokens.md": (
        "alice is not bob: exit status 3",
        "no content: exit status 3",
        "the old token: exit status 2",
    ),
}
"""Parts of the output of each page's commands."""
FIRST_HOUR = ["README.md", "docs/quick-start.md"]


def folders_in_order(container: str) -> list[str]:
    """Return the folders of a layer in the order of the import contracts, upper ones first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    (layers,) = (
        contract["layers"]
        for contract in settings["tool"]["importlinter"]["contracts"]
        if contract.get("containers") == [container]
    )
    return [name for layer in layers for name in layer.split(" | ")]


def test_readme_is_short() -> None:
    assert len(README.splitlines()) < README_LINES_MAX


def test_first_screen_shows_one_run_and_two_commands() -> None:
    first = "\n".join(README.splitlines()[:FIRST_SCREEN_LINES])
    assert re.findall(r"^\$ (make \w+)", first, re.M) == ["make demo", "make run"]
    shown = re.findall(r"^ +\d+  [\d:.]+ +\+[\d.]+s  (\w+)", first, re.M)
    stage: RunStage = "unborn"
    for name in shown:
        (event,) = (kind for kind in LIFECYCLE[stage] if kind.__name__ == name)
        stage = LIFECYCLE[stage][event]
    assert stage == "announced"
    assert set(shown) <= {name for name, _ in EVENT_TYPES}


def test_floor_plan_has_the_folders_in_import_order() -> None:
    floors = dict(
        re.findall(r"^(domain|application|infrastructure)/\n((?:  .*\n)+)", ARCHITECTURE, re.M)
    )
    for floor, lines in floors.items():
        shown = re.findall(r"^  (\w+)(?:/|\.py) ", lines, re.M)
        assert shown == folders_in_order(floor), floor
    assert set(floors) == {"domain", "application", "infrastructure"}


@pytest.mark.server
@pytest.mark.parametrize("page", nightly_but(SAID, FIRST_HOUR))
def test_commands_of_a_page_run_when_pasted(page: str, tmp_path: Path) -> None:
    blocks = re.findall(r"^```sh\n(.*?)^```$", (ROOT / page).read_text("utf-8"), re.M | re.S)
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
            output, _ = tour.communicate(timeout=TOUR_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            os.killpg(tour.pid, signal.SIGTERM)
            output, _ = tour.communicate(timeout=10)
            pytest.fail(f"the commands take more than {TOUR_SECONDS_MAX} s; they said:\n{output}")
    assert tour.returncode == 0, output
    for expected in SAID[page]:
        assert expected in output, output
    assert list(tmp_path.iterdir()) == []
