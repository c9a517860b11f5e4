"""The README says what is so: its links, its commands, its settings, its tour."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from domain.configuration.settings import VARIABLES, Settings
from infrastructure.inbound.command_line.main import app

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
TOUR_SECONDS_MAX = 110


def section(heading: str) -> str:
    _, _, rest = README.partition(f"\n## {heading}\n")
    assert rest, f"README.md has no section {heading}"
    return rest.partition("\n## ")[0]


def commands_of(command: object, name: str) -> list[str]:
    """The names of a command's own commands, or its own."""
    inner: dict[str, object] = getattr(command, "commands", {})
    if not inner:
        return [name]
    return [found for word, each in inner.items() for found in commands_of(each, f"{name} {word}")]


def test_every_link_leads_to_a_file() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target


def test_every_command_is_described_and_none_that_is_not_there() -> None:
    there = set(commands_of(typer.main.get_command(app), "spawnlog"))
    described = re.findall(r"^\| `(spawnlog [a-z -]+?)(?: [A-Z]+)?` \|", section("Commands"), re.M)
    told = set(described) | {"spawnlog announcement ack"}
    assert told == there


def test_every_make_target_is_described_and_none_that_is_not_there() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    there = set(re.findall(r"^([a-z]+):.*##", makefile, re.M)) - {"help", "constraints"}
    assert set(re.findall(r"^\| `make ([a-z]+)` \|", section("Install"), re.M)) == there


def test_every_setting_of_the_server_is_described() -> None:
    table = section("Configuration")
    for name, field in Settings.model_fields.items():
        assert f"`{field.alias or name}" in table, name
    for variable in VARIABLES.values():
        assert f"`{variable}`" in table, variable


@pytest.mark.server
def test_the_tour_can_be_copied_and_pasted(tmp_path: Path) -> None:
    blocks = re.findall(r"^```sh\n(.*?)^```$", section("Tour"), re.M | re.S)
    script = "set -eu\n" + "\n".join(blocks)
    plain = {name: text for name, text in os.environ.items() if not name.startswith("SPAWNLOG_")}
    beside = Path(sys.executable).parent
    with subprocess.Popen(
        ["sh", "-c", script],
        cwd=ROOT,
        env={**plain, "TMPDIR": str(tmp_path), "PATH": f"{beside}:{plain['PATH']}"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as tour:
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
    ):
        assert expected in said, said
    assert list(tmp_path.iterdir()) == []
