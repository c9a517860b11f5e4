"""What the lists of commands say, in a terminal of 80 columns."""

from collections.abc import Iterator
from typing import Any

import pytest
import typer

from infrastructure.inbound.command_line.main import app
from tests.support.servers.command_line import Command

CELLS = 80


def groups(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    inner = getattr(command, "commands", {})
    if inner:
        yield words
        for name, each in inner.items():
            yield from groups(each, (*words, name))


@pytest.mark.parametrize("words", list(groups(typer.main.get_command(app))), ids=" ".join)
def test_list_of_commands_cuts_no_sentence(
    spawnlog: Command, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(CELLS))
    shown = spawnlog(*words, "--help").stdout.partition("Commands:")[2]
    assert shown
    assert "..." not in shown
