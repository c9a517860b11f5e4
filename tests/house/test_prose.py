"""Documents pass a prose linter."""

import re
from pathlib import Path

import pytest
from proselint.checks import __register__
from proselint.config import DEFAULT, Config
from proselint.registry import CheckRegistry
from proselint.tools import LintFile

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
OFF = ("typography.symbols", "spelling.diacritical_marks")
"""Checks for print: curly quotes, and `résumé` for `resume`."""
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`|\]\([^)\n]*\)|^\|.*$", re.M | re.S)


def prose_of(page: Path) -> str:
    """Return a page with blanks in place of code, tables and targets of links."""
    return CODE.sub(lambda code: re.sub(r"\S", " ", code[0]), page.read_text("utf-8"))


@pytest.fixture(scope="module")
def config() -> Config:
    CheckRegistry().register_many(__register__)
    # The most specific name decides, so those come first.
    checks = dict.fromkeys(OFF, False) | DEFAULT["checks"]
    return Config(max_errors=DEFAULT["max_errors"], checks=checks)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_passes_prose_linter(config: Config, page: Path) -> None:
    found = LintFile(str(page.relative_to(ROOT)), prose_of(page)).lint(config)
    output = [f"line {item.pos[0]}: {item.check_result.message}" for item in found]
    assert not output, "\n".join(output)


def test_linter_finds_a_repeated_word(config: Config) -> None:
    assert LintFile("page", "A run has has ended.").lint(config)
