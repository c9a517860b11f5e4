"""The tables of the reference are complete, and have nothing else."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from application.queries.access import ALL_SCOPES
from domain.configuration.settings import VARIABLES, Settings
from domain.values.moments import parse_moment
from generators import configuration_reference
from generators import http_reference as http
from generators.command_line.reference import PAGES as PAGES_OF_COMMANDS
from generators.command_line.reference import commands, reference
from infrastructure.inbound.http.operations import OPERATIONS
from infrastructure.outbound.configuration.load import load

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_file(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), target


def anchors_of(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_anchor_leads_to_a_heading(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text("utf-8"))
    missing = [
        f"{target}#{anchor}"
        for target, anchor in links
        if anchor not in anchors_of(page.parent / target if target else page)
    ]
    assert missing == []


def test_every_page_is_in_the_index_by_reader() -> None:
    index = (DOCS / "README.md").read_text("utf-8")
    for page in DOCS.glob("*.md"):
        assert page.name == "README.md" or f"]({page.name})" in index, page.name


def test_page_of_commands_is_current() -> None:
    page = (DOCS / "commands.md").read_text("utf-8")
    assert reference(page) == page, "write it anew: make docs"
    assert len(re.findall(r"^\| `spawnlog ", page, re.M)) == len(commands())


def test_page_of_configuration_is_current_and_has_every_model() -> None:
    page = (DOCS / "configuration.md").read_text("utf-8")
    assert configuration_reference.reference(page) == page, "write it anew: make docs"
    for model in configuration_reference.models().values():
        configuration_reference.field_texts(model)


def test_configuration_at_top_of_its_page_loads(tmp_path: Path) -> None:
    page = (DOCS / "configuration.md").read_text("utf-8")
    example = re.findall(r"^```json5\n(.*?)^```$", page, re.M | re.S)[0]
    (tmp_path / "spawnlog.json5").write_text(example, "utf-8")
    configuration = load(tmp_path / "spawnlog.json5").configuration
    assert [agent.id for agent in configuration.agents.roster] == ["main", "writer"]


def test_every_scope_is_in_the_table_of_scopes() -> None:
    page = (DOCS / "users-and-tokens.md").read_text("utf-8")
    table = page.partition("## Scopes")[2].partition("## Sessions")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.M)) == ALL_SCOPES


def test_page_of_endpoints_is_current() -> None:
    page = (DOCS / "http.md").read_text("utf-8")
    assert http.reference(page) == page, "write it anew: make docs"
    assert len(re.findall(r"^\| `[A-Z]+ /", page, re.M)) == len(OPERATIONS)


def test_row_of_an_endpoint_is_written_from_its_operation() -> None:
    page = (DOCS / "http.md").read_text("utf-8")
    row = next(line for line in page.splitlines() if line.startswith("| `GET /v1/log` |"))
    assert "| `read`, sessions `*` | Get the head of the log" in row
    stale = row.replace("`read`", "`admin`").replace("`at`", "`gone`").replace("Get", "Gone")
    assert http.reference(page.replace(row, stale)) == page
    gone = "| `GET /v1/gone` | `read` | Nothing | | 200 |"
    assert http.reference(page.replace(row, f"{row}\n{gone}")) == page
    assert "| `GET /v1/log` | `read` | Get the head of the log" in http.reference(
        page.replace(f"{row}\n", "")
    )


def test_row_of_a_command_is_written_from_its_help() -> None:
    page = (DOCS / "commands.md").read_text("utf-8")
    row = next(line for line in page.splitlines() if line.startswith("| `spawnlog diff FROM TO` |"))
    assert reference(page.replace(row, "| `spawnlog diff` | Gone | `--gone` |")) == page
    assert reference(page.replace("- `diff`: Compares", "- `diff`: Does not compare")) == page


@pytest.mark.parametrize("pages", [http.PAGES, PAGES_OF_COMMANDS], ids=["http", "commands"])
def test_pages_with_more_have_the_named_section(pages: Mapping[str, str]) -> None:
    for target in pages.values():
        page, _, section = target.partition("#")
        text = (DOCS / (page or "http.md")).read_text("utf-8")
        headings = re.findall("^#+ (.*)$", text, re.M)
        anchors = {
            re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings
        }
        assert not section or section in anchors, target


def test_pages_with_more_are_of_known_commands_and_operations() -> None:
    assert PAGES_OF_COMMANDS.keys() <= commands().keys()
    assert http.PAGES.keys() <= {operation.name for operation in OPERATIONS}


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
