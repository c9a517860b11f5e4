"""Every rule is in one list, and no other code names a rule."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from domain.explanation.steps import STEP_RULES
from domain.spawn.stages import CHOICES, MESSAGE_STAGES, RULE_NAMES, RULES, SPAWN_STAGES
from domain.values import rules
from domain.values.rules import Rule
from tests.support.cases.refusals import REFUSALS
from tests.support.cases.rule_list import DOCUMENT, rendered

ROOT = Path(__file__).parents[3]
LIST = ROOT / "domain" / "values" / "rules.py"
SOURCES = [
    path
    for floor in ("domain", "application", "infrastructure")
    for path in sorted((ROOT / floor).rglob("*.py"))
    if path != LIST
]
MENTIONED = re.compile(r"rule\b|\bRefusal\(|judged\(|is_refused_by\(", re.IGNORECASE)
"""Source code without a match names no rule."""
EXPLAINED = {rule.name for rule in (*RULES, *CHOICES)}


def literals(node: ast.AST) -> Iterator[str]:
    """Yield plain strings, also in a tuple, that have the form of a name."""
    for item in node.elts if isinstance(node, ast.Tuple) else [node]:
        if isinstance(item, ast.Constant) and re.fullmatch("[a-z_]+", str(item.value)):
            yield str(item.value)


def is_called_rule(node: ast.AST) -> bool:
    """Return True if the name means a rule, or the name of one."""
    name = getattr(node, "attr", getattr(node, "id", ""))
    return isinstance(name, str) and name.lower().endswith("rule")


def minted(tree: ast.AST) -> Iterator[str]:
    """Yield names that source code gives to rules, as an argument, by assignment or by
    comparison.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in {"Refusal", "Rule"}:
                yield f"{name}(...)"
            if name in {"judged", "not_judged", "is_refused_by"}:
                yield from (text for arg in node.args[:2] for text in literals(arg))
            yield from (
                text
                for keyword in node.keywords
                if keyword.arg == "rule"
                for text in literals(keyword.value)
            )
        elif isinstance(node, ast.Assign):
            named = [node for target in node.targets for node in ast.walk(target)]
            if any(map(is_called_rule, named)):
                yield from literals(node.value)
        elif isinstance(node, ast.Compare) and any(
            map(is_called_rule, (node.left, *node.comparators))
        ):
            yield from (text for comparator in node.comparators for text in literals(comparator))


def test_every_rule_stands_in_the_list_once() -> None:
    rows = {variable for variable in vars(rules).values() if isinstance(variable, Rule)}
    assert rows <= {*RULES, *CHOICES}
    assert len(EXPLAINED) == len(RULES) + len(CHOICES)


def test_no_rule_is_named_elsewhere() -> None:
    for path in SOURCES:
        source = path.read_text("utf-8")
        found = set(minted(ast.parse(source))) if MENTIONED.search(source) else set[str]()
        # Explanations name their steps beside their rules.
        assert found <= {"admission", "preparation", "scripts"}, path


@pytest.mark.parametrize(
    "source",
    [
        'Refusal("depth", "error", "text")',
        'SpawnRefused(rule="depth")',
        'step, rule = "scripts", "depth"',
        'is_it = refused.rule == "depth"',
        'record.judged("admission", "depth", told, by)',
    ],
)
def test_name_that_is_given_elsewhere_is_found(source: str) -> None:
    assert not set(minted(ast.parse(source))) <= {"admission", "scripts"}


def test_message_rules_keep_the_order_of_a_spawn() -> None:
    spawn = {spawn_stage.name: spawn_stage.rules for spawn_stage in SPAWN_STAGES}
    for stage in MESSAGE_STAGES:
        assert stage.rules == tuple(item for item in spawn[stage.name] if item in stage.rules)
    assert [*STEP_RULES] == [step.name for step in rules.STEPS]


def test_golden_refusals_are_by_listed_rules() -> None:
    recorded = [
        json.loads(path.read_text("utf-8"))
        for path in sorted((ROOT / "tests" / "histories").glob("SpawnRefused.*.json"))
    ]
    assert recorded
    assert {event["rule"] for event in recorded} <= set(RULE_NAMES)


def test_rule_refuses_with_a_status_of_its_own() -> None:
    assert rules.SANDBOX.refusal("no").status == "forbidden"
    assert rules.SANDBOX.refusal("no", status="error").status == "error"
    with pytest.raises(AssertionError):
        rules.DEPTH.refusal("no", status="error")


def test_page_of_rules_is_current() -> None:
    assert DOCUMENT.read_text("utf-8") == rendered(), "write it: make docs"


@pytest.mark.parametrize("name", RULE_NAMES)
def test_every_rule_refuses_somewhere(name: str) -> None:
    assert REFUSALS[name]() == name
