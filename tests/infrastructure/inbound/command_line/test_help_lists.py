"""What the lists of commands say, in a terminal of 80 columns."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from tests.support.command_line.program import program
from tests.support.command_line.reference import commands
from tests.support.servers.command_line import Command

CELLS = 80


def groups(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    inner = getattr(command, "commands", {})
    if inner:
        yield words
        for name, each in inner.items():
            yield from groups(each, (*words, name))


@pytest.mark.parametrize("words", list(groups(program())), ids=" ".join)
def test_list_of_commands_cuts_no_sentence(
    spawnlog: Command, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(CELLS))
    shown = spawnlog(*words, "--help").stdout.partition("Commands:")[2]
    assert shown
    assert "..." not in shown


@pytest.mark.parametrize("words", commands())
def test_help_is_in_words_of_people(words: str) -> None:
    command = commands()[words]
    shown = command.get_help(typer.Context(command, info_name=f"spawnlog {words}"))
    for sign in ("{", "[[", "list[", "env var", "the variable", "46116860184"):
        assert sign not in shown
    assert not re.search(r"--\S+ <int", shown)
    assert not re.search(r"^  [\w.]+ <", shown, re.MULTILINE)
