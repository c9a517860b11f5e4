"""Generate the table of commands in docs/commands.md; run by `make docs`.

The text in the column "does" is kept. A new command gets the text of its help.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import typer

from infrastructure.inbound.command_line.main import app

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"
HEAD = "| command | does | its own options |\n|---|---|---|\n"
ROW = re.compile(r"^\| `spawnlog ([a-z -]+?)((?: \[?[A-Z]+\]?)*)` \| (.*?) \|(?: [^|]* \|)?$")
WITH_AT = re.compile(r"(?<=^With `--at`: ).*?(?=\.\n\n)", re.M | re.S)
SHARED = re.compile(r"^Shared options: (.*?)\n\n", re.M | re.S)
LINE_CHARACTERS_MAX = 100
OPTION = re.compile("`(--[a-z-]+)`")


@cache
def commands() -> Mapping[str, Any]:
    """Return all commands by their words, in the order of the help."""
    return dict(_commands(typer.main.get_command(app), ()))


def _commands(command: Any, words: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    inner = getattr(command, "commands", {})
    if not inner:
        yield " ".join(words), command
    for word, each in inner.items():
        yield from _commands(each, (*words, word))


def reference(page: str) -> str:
    """Return the page with an up-to-date table of commands."""
    known = commands()
    before, head, after = page.partition(HEAD)
    assert head, "docs/commands.md has no table of commands"
    table, gap, rest = after.partition("\n\n")
    shared = set(OPTION.findall((SHARED.search(before) or [""])[0]))
    described = {found[1]: found[3] for row in table.splitlines() if (found := ROW.match(row))}
    rows = [
        f"| `spawnlog {words}{_arguments(command)}` | {described.get(words) or _help(command)}"
        f" | {_options(command, shared)} |"
        for words in _order(described, known)
        for command in (known[words],)
    ]
    at = _folded("With `--at`: ", [f"`{words}`" for words in known if _has(known[words], "--at")])
    return WITH_AT.sub(lambda _: at, before) + HEAD + "\n".join(rows) + gap + rest


def _order(described: Mapping[str, str], known: Mapping[str, Any]) -> list[str]:
    """Return the commands in the order of the page; new ones follow their group."""
    order = [words for words in described if words in known]
    for words in known:
        if words not in described:
            group = words.partition(" ")[0]
            places = [
                place for place, listed in enumerate(order) if listed.partition(" ")[0] == group
            ]
            order.insert(places[-1] + 1 if places else len(order), words)
    return order


def _folded(start: str, words: list[str]) -> str:
    lines = [start]
    for place, word in enumerate(words):
        piece = word if place + 1 == len(words) else f"{word}, "
        if len(lines[-1]) + len(piece.rstrip()) > LINE_CHARACTERS_MAX:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines).removeprefix(start.rstrip()).lstrip()


def _help(command: Any) -> str:
    text = " ".join(str(command.help or "").partition("\n\n")[0].split())
    return (text[:1].lower() + text[1:]).removesuffix(".").replace("|", "\\|")


def _arguments(command: Any) -> str:
    return "".join(
        f" {(parameter.metavar or parameter.name).upper()}"
        for parameter in command.params
        if parameter.param_type_name == "argument"
    )


def _has(command: Any, option: str) -> bool:
    return any(option in parameter.opts for parameter in command.params)


def _options(command: Any, shared: set[str]) -> str:
    names = [
        name
        for parameter in command.params
        for name in (*parameter.opts, *parameter.secondary_opts)
        if name.startswith("--") and name != "--help" and name not in shared
    ]
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    PAGE.write_text(reference(PAGE.read_text("utf-8")), "utf-8")
