"""Write `docs/rules.md` from the list of rules: `python -m tests.support.cases.rule_list`."""

from pathlib import Path

from domain.spawn.stages import CHOICES, RULES, StageName, names_of
from domain.values.rules import Rule

DOCUMENT = Path(__file__).parents[3] / "docs" / "rules.md"
_HEAD = """# Rules

By which rules a spawn or a message is refused. A refused one is on record with the name of its
rule, and its caller is told: 403 `spawn_forbidden` where the status is `forbidden`, 422
`spawn_error` where it is `error`. `spawnlog run explain` says what each rule compared. This page is
written by `python -m tests.support.cases.rule_list` from `domain/spawn/stages.py`, and a test
fails when it is stale.
"""
_SECTIONS: tuple[tuple[StageName, str, str], ...] = (
    ("admission", "Admission", "In this order; the first that refuses speaks."),
    ("dependencies", "Dependencies", "Judged with admission, behind it."),
    ("plan", "Eligibility", "Of the agent that will run, in this order."),
    ("steps", "Steps", "Of the preparation, in this order."),
    ("other", "At any time", "While the spawn is prepared."),
)


def rendered() -> str:
    """Return the page."""
    sections = [
        f"\n## {title}\n\n{when}\n\n| rule | refuses when | status |\n|---|---|---|\n{_rows(stage)}"
        for stage, title, when in _SECTIONS
    ]
    choices = "\n".join(f"| `{one.name}` | {one.when} |" for one in CHOICES)
    told = "Explained where they are made, between the rules; none refuses."
    sections.append(f"\n## Choices\n\n{told}\n\n| choice | what is told |\n|---|---|\n{choices}\n")
    return _HEAD + "".join(sections)


def _rows(stage: StageName) -> str:
    refusing = [one for one in RULES if one.name in names_of(stage)]
    return "".join(f"| `{one.name}` | {one.when} | {_statuses(one)} |\n" for one in refusing)


def _statuses(rule: Rule) -> str:
    return ", ".join(f"`{status}`" for status in rule.statuses)


if __name__ == "__main__":
    DOCUMENT.write_text(rendered(), "utf-8")
