"""The tables of the reference say what there is: nothing is missing, nothing is there beside it."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
import typer

from domain.configuration.settings import VARIABLES, Settings
from domain.values.moments import parse_moment
from infrastructure.inbound.command_line.main import app
from infrastructure.inbound.http.openapi import document

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
OPTION = re.compile(r"--[a-z][a-z-]*")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]


def commands_of(command: object, name: str) -> list[str]:
    """The names of a command's own commands, or its own."""
    inner: dict[str, object] = getattr(command, "commands", {})
    if not inner:
        return [name]
    return [found for word, each in inner.items() for found in commands_of(each, f"{name} {word}")]


def served() -> dict[str, set[str]]:
    """Return the endpoints of the server, each with its parameters but for `minPosition`, which all
    reads take."""
    return {
        f"{method.upper()} {path}": {
            one["name"]
            for one in operation.get("parameters", ())
            if one["in"] == "query" and one["name"] != "minPosition"
        }
        for path, methods in document()["paths"].items()
        for method, operation in methods.items()
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_file(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), target


def test_every_page_is_in_the_index_by_reader() -> None:
    index = (DOCS / "README.md").read_text("utf-8")
    for page in DOCS.glob("*.md"):
        assert page.name == "README.md" or f"]({page.name})" in index, page.name


def test_every_command_is_described_and_none_that_is_not_there() -> None:
    there = set(commands_of(typer.main.get_command(app), "spawnlog"))
    page = (DOCS / "commands.md").read_text("utf-8")
    described = re.findall(r"^\| `(spawnlog [a-z -]+?)(?: [A-Z]+)?` \|", page, re.M)
    assert {*described, "spawnlog announcement ack"} == there


ROW = re.compile(r"^\| `spawnlog ([a-z -]+?)(?: [A-Z]+)?` \| (.*) \|$", re.M)


@pytest.mark.parametrize(
    ("name", "row"),
    ROW.findall((DOCS / "commands.md").read_text("utf-8")),
    ids=lambda text: text[:20],
)
def test_options_of_each_command_are_described(name: str, row: str) -> None:
    command: object = typer.main.get_command(app)
    for word in name.split():
        command = getattr(command, "commands", {})[word]
    there = {
        option
        for parameter in getattr(command, "params", ())
        for option in (*parameter.opts, *parameter.secondary_opts)
        if option.startswith("--")
    }
    page = (DOCS / "commands.md").read_text("utf-8")
    shared = re.findall(r"^Shared options: (.*?)\n\n", page, re.M | re.S)[0]
    # An option of another command is named together with that.
    described = set(OPTION.findall(re.sub(r"`[a-z]+ [a-z]+ --[^`]*`", "", row)))
    assert described <= there
    assert there - described - set(OPTION.findall(shared)) <= {"--help", "--browser", "--json"}


@pytest.mark.parametrize(
    ("page", "head"),
    [
        ("commands.md", "| time | means |"),
        ("http.md", "| `at` | means |"),
        ("time-travel.md", "| moment | means |"),
    ],
)
def test_moments_of_the_pages_are_moments(page: str, head: str) -> None:
    rows = (
        (DOCS / page).read_text("utf-8").partition(f"{head}\n|---|---|\n")[2].partition("\n\n")[0]
    )
    named = [form for row in rows.splitlines() for form in re.findall("`(.*?)`", row.split("|")[1])]
    assert len(named) >= 4
    for form in named:
        parse_moment(form, datetime(2026, 3, 1, tzinfo=UTC))
    assert {"ms", "s", "m", "h", "d", "w"} <= set(re.findall("`([a-z]+)`", rows))


def test_the_commands_that_show_a_past_state_are_listed() -> None:
    whole = typer.main.get_command(app)
    there = set()
    for name in commands_of(whole, ""):
        command: object = whole
        for word in name.split():
            command = getattr(command, "commands", {})[word]
        if "at" in {parameter.name for parameter in getattr(command, "params", ())}:
            there.add(name.strip())
    page = (DOCS / "commands.md").read_text("utf-8")
    listed = re.findall(r"^With `--at`: (.*?)\.\n\n", page, re.M | re.S)[0]
    assert set(re.findall(r"`([a-z ]+)`", listed)) == there


def test_every_endpoint_is_described_and_none_that_is_not_there() -> None:
    rows = re.findall(
        r"^\| `([A-Z]+ /\S+)` \|.*\| (.*?) ?\|$", (DOCS / "http.md").read_text("utf-8"), re.M
    )
    assert {endpoint: set(re.findall(r"`(\w+)`", row)) for endpoint, row in rows} == served()


def test_every_make_target_is_described_and_none_that_is_not_there() -> None:
    there = set(re.findall(r"^([a-z]+):.*##", (ROOT / "Makefile").read_text("utf-8"), re.M))
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    assert set(re.findall(r"^\| `make ([a-z]+)` \|", page, re.M)) == there - {"help"}


def test_every_setting_of_the_server_is_described() -> None:
    page = (DOCS / "configuration.md").read_text("utf-8").partition("## Settings of the server")[2]
    for name, field in Settings.model_fields.items():
        assert f"`{field.alias or name}" in page, name
    for variable in VARIABLES.values():
        assert f"`{variable}`" in page, variable
