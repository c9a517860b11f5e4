"""The command line's description of the operations: it is current, and complete."""

import subprocess
import sys

import pytest

from application.operations import OPERATIONS
from application.queries.command import Command
from application.queries.operation import Operation
from infrastructure.inbound.command_line.client.deferred import load
from infrastructure.inbound.command_line.client.described import described_operations
from infrastructure.inbound.command_line.client.recorded import HELP
from infrastructure.inbound.command_line.client.recorded import OPERATIONS as RECORDED
from infrastructure.inbound.command_line.commands.derived import DISPLAYS
from tests.support.command_line.describe import description, help_of_functions
from tests.support.command_line.reference import commands


def test_description_is_current() -> None:
    assert RECORDED.read_text("utf-8") == description(), "write it anew: make docs"


def test_help_of_functions_is_current() -> None:
    assert HELP.read_text("utf-8") == help_of_functions(), "write it anew: make docs"


@pytest.mark.parametrize("row", OPERATIONS, ids=lambda row: row.name)
def test_operation_has_command_or_reason(row: Operation) -> None:
    if isinstance(row.command, Command):
        assert row.command.words is None or row.command.words in commands()
    else:
        assert row.command, "give the row a command, or the reason why it has none"


def test_displays_are_of_derived_commands() -> None:
    derived = {one.name for one in described_operations().values() if not one.by_hand}
    assert set(DISPLAYS) <= derived
    assert all(callable(load(place)) for place in DISPLAYS.values())


@pytest.mark.parametrize("words", commands())
def test_option_and_argument_has_help(words: str) -> None:
    parameters = [one for one in commands()[words].params if one.name != "help"]
    assert [one.name for one in parameters if not one.help] == []


@pytest.mark.process
def test_choices_leave_the_words_of_facts_alone() -> None:
    """Python keeps one `Literal` for equal words: of a file or of a fact, whichever is first."""
    program = """
from infrastructure.inbound.command_line.main import main
from domain.run.facts import SpawnOptions
made = SpawnOptions(mode="run")
print(SpawnOptions.from_json('{"mode": "run"}').to_json() == made.to_json())
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert ended.stdout == b"True\n"
