"""The document about the guarantees names all tests and rules that exist."""

import re
from pathlib import Path

from world.check import RULES

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "guarantees.md").read_text("utf-8")
STORM = (ROOT / "tests" / "guarantees" / "test_guarantees_under_faults.py").read_text("utf-8")
ABOUT_THE_STORM_ITSELF = {"test_everything_went_wrong_that_should"}


def test_each_test_that_attacks_a_guarantee_is_named() -> None:
    there = set(re.findall(r"^def (test_\w+)", STORM, re.M)) - ABOUT_THE_STORM_ITSELF
    storm, _, _ = DOCUMENT.partition("\n## Over HTTP")
    assert set(re.findall(r"`(test_\w+)`", storm)) == there


def test_each_rule_of_the_checker_is_named() -> None:
    _, _, rules = DOCUMENT.partition("| rule of the checker")
    cells = re.findall(r"^\| .* \| (`.*`) \|$", rules, re.M)
    assert {name for cell in cells for name in re.findall(r"`(\w+)`", cell)} == set(RULES)


def test_every_file_that_is_named_is_there() -> None:
    named = re.findall(r"`((?:tests|world)/[\w/.]+)`", DOCUMENT)
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []
