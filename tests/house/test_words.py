"""Check that the glossary names files and types that exist."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FLOORS = ("domain", "application", "infrastructure", "spawnlog")
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text("utf-8")
ENTRIES = re.findall(r"^\| \*\*(.+?)\*\* \| (.+) \| (.+?) \|$", GLOSSARY, re.M)
SMALL_WORDS = {"a", "by", "of"}


def product_modules() -> Iterator[Path]:
    for floor in FLOORS:
        yield from sorted((ROOT / floor).rglob("*.py"))


def names_in(module: Path) -> Iterator[str]:
    """The names that a module defines at its top level."""
    for node in ast.parse(module.read_text("utf-8")).body:
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                yield node.name
            case ast.Assign():
                yield from (each.id for each in node.targets if isinstance(each, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case _:
                pass


def words_of(text: str) -> list[str]:
    """`RequestGuard`, `request_guard` and "Request guard" are the same two words."""
    apart = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", text)
    return re.findall(r"[a-z0-9]+", apart.lower())


def test_every_word_of_the_glossary_is_there_once() -> None:
    words = [word for word, _, _ in ENTRIES]
    assert len(words) > 100
    assert len(words) == len(set(words))


@pytest.mark.parametrize(("word", "where"), [(word, where) for word, _, where in ENTRIES])
def test_the_file_of_a_word_is_there_and_uses_it(word: str, where: str) -> None:
    path = ROOT / re.findall(r"`([\w-]+/[\w./-]*)`", where)[0]
    assert path.exists(), where
    files = [path] if path.is_file() else sorted(path.rglob("*.py"))
    used = " ".join(words_of(" ".join(file.read_text("utf-8") for file in files) + f" {where}"))
    for part in set(words_of(word)) - SMALL_WORDS:
        stem = part.removesuffix("s")[:6]
        assert re.search(rf"\b{stem}", used), f"{where} does not say {part}"


def test_every_type_that_the_glossary_names_is_there() -> None:
    there = {name for module in product_modules() for name in names_in(module)}
    named = set(re.findall(r"`([A-Z][a-z]+[A-Z]?\w*)`", GLOSSARY))
    assert named
    assert named <= there, named - there
