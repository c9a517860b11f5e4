"""Check that the glossary names files and types that exist."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FLOORS = ("domain", "application", "infrastructure", "client/spawnlog")
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text("utf-8")
DEFINED = re.compile(r"^(?:class |(?:async )?def |(?=\w+(?:: [^=\n]+)? = ))(\w+)", re.M)
"""Matches the names that a module defines at its top level."""
ENTRIES = re.findall(r"^\| \*\*(.+?)\*\* \| (.+) \| (.+?) \|$", GLOSSARY, re.M)


def product_modules() -> Iterator[Path]:
    for floor in FLOORS:
        yield from sorted((ROOT / floor).rglob("*.py"))


def test_every_word_of_the_glossary_is_there_once() -> None:
    words = [word for word, _, _ in ENTRIES]
    assert len(words) > 100
    assert len(words) == len(set(words))


def test_glossary_names_files_that_exist() -> None:
    named = [re.findall(r"`([\w-]+/[\w./-]*)`", where)[0] for _, _, where in ENTRIES]
    missing = [path for path in named if not (ROOT / path).exists()]
    assert missing == []


def test_every_type_that_the_glossary_names_is_there() -> None:
    there = {
        name
        for product_module in product_modules()
        for name in DEFINED.findall(product_module.read_text("utf-8"))
    }
    named = set(re.findall(r"`([A-Z][a-z]+[A-Z]?\w*)`", GLOSSARY))
    assert named
    assert named <= there, named - there
