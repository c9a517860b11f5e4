"""Writes `docs/rules.md` from the list of rules: `python -m tests.support.cases.rule_list`."""

from collections.abc import Iterable
from pathlib import Path

from domain.values import rules
from domain.values.rules import Rule

DOCUMENT = Path(__file__).parents[3] / "docs" / "rules.md"
_HEAD = """# Rules

By which rules a spawn or a message is refused. A refused one is on record with the name of its
rule, and its caller is told: 403 `spawn_forbidden` where the status is `forbidden`, 422
`spawn_error` where it is `error`. `spawnlog run explain` says what each rule compared. This page is
written by `python -m tests.support.cases.rule_list` from `domain/values/rules.py`, and a test
fails when it is stale.
"""
_SECTIONS = (
    ("Admission", "In this order; the first that refuses speaks.", rules.ADMISSION),
    ("Dependencies", "Judged with admission, behind it.", rules.DEPENDENCIES),
    ("Eligibility", "Of the agent that will run, in this order.", rules.ELIGIBILITY),
    ("Steps", "Of the preparation, in this order.", rules.STEPS),
    ("At any time", "While the spawn is prepared.", rules.ANY_TIME),
)


def rendered() -> str:
    """The page."""
    sections = [
        f"\n## {title}\n\n{when}\n\n| rule | refuses when | status |\n|---|---|---|\n{_rows(group)}"
        for title, when, group in _SECTIONS
    ]
    choices = "\n".join(f"| `{one.name}` | {one.when} |" for one in rules.CHOICES)
    told = "Explained where they are made, between the rules; none refuses."
    sections.append(f"\n## Choices\n\n{told}\n\n| choice | what is told |\n|---|---|\n{choices}\n")
    return _HEAD + "".join(sections)


def _rows(group: Iterable[Rule]) -> str:
    return "".join(f"| `{one.name}` | {one.when} | {_statuses(one)} |\n" for one in group)


def _statuses(rule: Rule) -> str:
    return ", ".join(f"`{status}`" for status in rule.statuses)


if __name__ == "__main__":
    DOCUMENT.write_text(rendered(), "utf-8")
