"""Generate the table of commands in docs/commands.md; run by `make docs`.

The texts are those of `--help`. The page decides the order of the commands.
"""

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import typer

from infrastructure.inbound.command_line.main import app

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"
HEAD = "| command | does | its own options |\n|---|---|---|\n"
DETAILS = "<!-- details -->\n"
ROW = re.compile(r"^\| `spawnlog ([a-z -]+?)(?: \[[A-Za-z]+\]| [A-Z]+)*` \|", re.M)
PAGES: Mapping[str, str] = {
    "mcp": "mcp.md",
    "open": "page.md",
    "spawn": "chains-and-batches.md",
    "run log": "http.md#follow-a-run",
    "run send": "sessions.md",
    "run respawn": "respawn.md",
    "what-if": "time-travel.md#what-if",
    "event find": "http.md#since-when",
    "announcement redrive": "webhooks.md#retries-and-parked-announcements",
    "session context": "shared-context.md",
    "config check": "configuration.md",
    "script test": "context-scripts.md",
    "log verify": "operating.md#verifying-the-log",
    "log export": "exported-files.md",
    "log import": "exported-files.md",
}
"""The page with more about a command."""
WITH_AT = re.compile(r"(?<=^With `--at`: ).*?(?=\.\n\n)", re.M | re.S)
SHARED = re.compile(r"^Shared options: (.*?)\n\n", re.M | re.S)
LINE_CHARACTERS_MAX = 100
PAGE_CHARACTERS_MAX = 118
OPTION = re.compile("`(--[a-z-]+)`")
BARE_OPTION = re.compile("--[a-z][a-z-]*")


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
    """Return the page with an up-to-date table of commands, and the details of each."""
    known = commands()
    before, head, after = page.partition(HEAD)
    assert head, "docs/commands.md has no table of commands"
    table, gap, rest = after.partition("\n\n")
    between, mark, rest = rest.partition(DETAILS)
    assert mark, "docs/commands.md has no mark of the details"
    rest = rest.partition("\n\n")[2]
    shared = set(OPTION.findall((SHARED.search(before) or [""])[0]))
    order = _order(ROW.findall(table), known)
    rows = [
        f"| `spawnlog {words}{_arguments(known[words])}` | {_summary(known[words])}{_page(words)}"
        f" | {_options(known[words], shared)} |"
        for words in order
    ]
    details = [
        textwrap.fill(
            f"- `{words}`: {text}",
            PAGE_CHARACTERS_MAX,
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for words in order
        if (text := _details(known[words]))
    ]
    at = _folded("With `--at`: ", [f"`{words}`" for words in known if _has(known[words], "--at")])
    return (
        WITH_AT.sub(lambda _: at, before)
        + HEAD
        + "\n".join(rows)
        + gap
        + between
        + DETAILS
        + "\n".join(details)
        + "\n\n"
        + rest
    )


def _order(listed: Sequence[str], known: Mapping[str, Any]) -> list[str]:
    """Return the commands in the order of the page; new ones follow their group."""
    order = [words for words in listed if words in known]
    for words in known:
        if words not in listed:
            group = words.partition(" ")[0]
            places = [
                place for place, other in enumerate(order) if other.partition(" ")[0] == group
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


def _summary(command: Any) -> str:
    text = str(command.help or "").partition("\n\n")[0]
    return _in_cell(text).removesuffix(".")


def _details(command: Any) -> str:
    return _in_cell(str(command.help or "").partition("\n\n")[2])


def _in_cell(text: str) -> str:
    """Return a text of the help on one line, with its options in backticks."""
    parts = " ".join(text.split()).split("`")
    parts[::2] = [BARE_OPTION.sub(r"`\g<0>`", part) for part in parts[::2]]
    return "`".join(parts).replace("|", "\\|")


def _page(words: str) -> str:
    page = PAGES.get(words)
    return f" ([{page.partition('#')[0]}]({page}))" if page else ""


def _arguments(command: Any) -> str:
    return "".join(
        f" {name}" if parameter.required else f" [{name}]"
        for parameter in command.params
        if parameter.param_type_name == "argument"
        for name in [parameter.metavar or parameter.name.upper()]
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
