"""Names in the documents exist."""

import re
from pathlib import Path

import pytest

from domain.event_types import EVENT_TYPES, LOG_FORMAT
from infrastructure.inbound.http.openapi import document
from infrastructure.outbound.configuration.load import load
from tests.support.servers.command_line import program

ROOT = Path(__file__).parents[2]
RECORDS = sorted((ROOT / "docs" / "adr").glob("[0-9]*.md"))
NOT_SERVED = (ROOT / "docs" / "not-yet-served.md").read_text("utf-8")


def served_paths() -> list[re.Pattern[str]]:
    """Return every path with a route, as a pattern of the paths that it serves."""
    paths = list(document()["paths"])
    assert len(paths) > 10
    return [re.compile(re.sub(r"\\{[^}]*\\}", "[^/]+", re.escape(path))) for path in paths]


def is_served(path: str) -> bool:
    return any(pattern.fullmatch(path) for pattern in served_paths())


def test_the_changelog_lists_every_event_type_and_the_format() -> None:
    history = (ROOT / "CHANGELOG.md").read_text("utf-8").partition("### History format")[2]
    assert f"Log format {LOG_FORMAT}" in history
    for name, version in EVENT_TYPES:
        assert re.search(rf"\b{name}\b", history), f"{name} version {version}"


def test_every_decision_record_is_numbered_and_whole() -> None:
    assert [record.name[:4] for record in RECORDS] == [
        f"{n:04d}" for n in range(1, len(RECORDS) + 1)
    ]
    for record in RECORDS:
        text = record.read_text("utf-8")
        assert text.startswith(f"# {record.name[:4]}. "), record.name
        headings = re.findall(r"^## (.+)$", text, re.M)
        assert headings == ["Context", "Decision", "Consequences", "What would change our mind"]


def test_every_path_that_an_example_asks_for_is_served() -> None:
    pages = [page.read_text("utf-8") for page in (ROOT / "docs").glob("*.md")]
    paths = {path for page in pages for path in re.findall(r'"\$url(/[^"?]*)', page)}
    assert paths
    for path in paths:
        assert is_served(path), path


def test_messages_of_troubleshooting_are_in_the_code() -> None:
    modules = [ROOT / "build_page.py"]
    for folder in ("domain", "application", "infrastructure", "client", "examples"):
        modules += (ROOT / folder).rglob("*.py")
    code = "\n".join(module.read_text("utf-8") for module in modules)
    code = re.sub(r'"\s*\n\s*f?"', "", code)
    page = (ROOT / "docs" / "troubleshooting.md").read_text("utf-8")
    messages = re.findall(r"^\| `([^`]+)`", page, re.M)
    assert len(messages) > 25
    for message in messages:
        phrases = re.findall(r"(?=\b([a-z]+(?: [a-z]+){2})\b)", message) or [message]
        assert any(phrase in code for phrase in phrases), message


def shown_configurations(page: Path) -> list[str]:
    """Return the `json5` blocks of a page, each completed to a whole configuration."""
    configurations = []
    for block in re.findall(r"^```json5\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S):
        text = block.strip().removesuffix(",")
        if text.startswith("runtime:"):
            text = f"agents: {{defaults: {{{text}}}, list: [{{id: 'main', default: true}}]}}"
        configurations.append(text if text.startswith("{") else f"{{{text}}}")
    return configurations


@pytest.mark.parametrize(
    "page",
    [page for page in sorted((ROOT / "docs").glob("*.md")) if shown_configurations(page)],
    ids=lambda page: page.name,
)
def test_configurations_of_a_page_are_accepted(page: Path, tmp_path: Path) -> None:
    for number, text in enumerate(shown_configurations(page)):
        file = tmp_path / f"{number}.json5"
        file.write_text(text, "utf-8")
        assert load(file).configuration.default_agent_id


def test_what_is_told_to_be_missing_is_missing() -> None:
    result = re.findall(r"`(?:GET|POST|PATCH) (/v1/[^`?]*)`", NOT_SERVED)
    for path in result:
        assert not is_served(path.replace("{key}", "k").replace("{runId}", "r")), path
    groups: dict[str, object] = getattr(program(), "commands", {})
    assert not set(groups) & {"worker", "doctor"}
    run: dict[str, object] = getattr(groups["run"], "commands", {})
    for missing in re.findall(r"`spawnlog run ([a-z\\|]+)`", NOT_SERVED):
        assert not set(run) & set(missing.split("\\|"))
