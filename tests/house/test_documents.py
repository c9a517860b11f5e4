"""The documents name what there is."""

import re
from pathlib import Path

from domain.event_types import EVENT_TYPES, LOG_FORMAT

ROOT = Path(__file__).parents[2]
RECORDS = sorted((ROOT / "docs" / "adr").glob("*.md"))
LINES_MAX = 70


def test_the_changelog_lists_every_event_type_and_the_format() -> None:
    history = (ROOT / "CHANGELOG.md").read_text("utf-8").partition("### History format")[2]
    assert f"Log format {LOG_FORMAT}" in history
    for name, version in EVENT_TYPES:
        assert re.search(rf"\b{name}\b", history), f"{name} version {version}"


def test_the_glossary_points_to_files_that_are_there() -> None:
    glossary = (ROOT / "docs" / "glossary.md").read_text("utf-8")
    for path in re.findall(
        r"`((?:domain|application|infrastructure|docs|examples)/[\w./-]+)`", glossary
    ):
        assert (ROOT / path).exists(), path


def test_the_words_of_the_glossary_are_told_once() -> None:
    words = re.findall(
        r"^\| \*\*([^*]+)\*\*", (ROOT / "docs" / "glossary.md").read_text("utf-8"), re.M
    )
    assert len(words) == len(set(words))


def test_every_decision_record_is_numbered_short_and_whole() -> None:
    assert [record.name[:4] for record in RECORDS] == [
        f"{n:04d}" for n in range(1, len(RECORDS) + 1)
    ]
    for record in RECORDS:
        text = record.read_text("utf-8")
        assert text.startswith(f"# {record.name[:4]}. "), record.name
        headings = re.findall(r"^## (.+)$", text, re.M)
        assert headings == ["Context", "Decision", "Consequences", "What would change our mind"]
        assert text.count("\n") <= LINES_MAX, record.name
