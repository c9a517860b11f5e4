"""The words of the glossary are those of the code, and the words that it replaced are gone."""

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

# Words that say nothing to who comes new. Each has a plain one in the glossary.
# fmt: off
REPLACED = {
    "house", "door", "doors", "crew", "means", "keeper", "keepers", "keep", "kept", "gatehouse",
    "warm", "lifeline", "sweep", "sweeping", "heed", "heeded", "sighted", "sighting", "seen",
    "told", "asked", "judged", "unfit", "fitted", "doubt", "doubts", "away", "wished",
    "beginnings", "settle", "settled", "settling", "rooms", "ingredient", "ingredients",
    "carry",
}
# fmt: on
ALLOWED = {
    "AWAY_SECONDS": "how long a database may be away",
    "ChildSettled": "a recorded event",
    "DescendantsSettled": "a recorded event",
    "HookTold": "a recorded event",
    "Ingredient": "`ingredients` is a field of SessionCreated",
    "BootstrapIngredients": "`ingredients` is a field of SessionCreated",
    "bootstrap_ingredients": "`ingredients` is a field of SessionCreated",
    "message_ingredients": "`ingredients` is a field of SessionCreated",
    "preamble_ingredients": "`ingredients` is a field of SessionCreated",
    "SettleChild": "the command that leads to ChildSettled",
    "_settle_child": "the command that leads to ChildSettled",
    "SETTLED": "the stages of a run whose requester has ChildSettled",
    "SettleDependencies": "looks whether what a run waits for has settled",
    "settle_dependencies": "decides SettleDependencies",
    "_PUT_AWAY": "names the stored field `put_away_from`",
    "_keep_fields": "an upcast that changes nothing",
    "_keep_order": "hooks are told in the order of the record",
    "_TAKE_AWAY": "takes a key out of a context",
    "_is_cleared_away": "a file is",
    "SWEEP_SECONDS": "between two removals of staged files",
}


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


def test_no_name_of_the_product_is_a_word_that_was_replaced() -> None:
    names = {name for module in product_modules() for name in (*names_in(module), module.stem)}
    said = {name for name in names if not REPLACED.isdisjoint(words_of(name))}
    assert said == set(ALLOWED), said ^ set(ALLOWED)
