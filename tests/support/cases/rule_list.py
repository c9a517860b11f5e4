"""Write `docs/rules.md` from the list of rules: `python -m tests.support.cases.rule_list`."""

from pathlib import Path

from domain.spawn.stages import RULES, StageName, names_of
from domain.values.rules import Rule

DOCUMENT = Path(__file__).parents[3] / "docs" / "rules.md"
_HEAD = """# Rules

Look up why a spawn or a message was refused. A refusal is recorded with the name of its rule, and
answered with 403 `spawn_forbidden` if its status is `forbidden`, 422 `spawn_error` if it is
`error`. `spawnlog run explain` shows what each rule compared, and the choices that refuse nothing,
such as the model.

<!-- Generated from domain/spawn/stages.py: make docs -->
"""
_SECTIONS: tuple[tuple[StageName, str, str], ...] = (
    ("admission", "Admission", "In this order; the first that refuses decides."),
    ("dependencies", "Dependencies", "After those of admission."),
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
    return _HEAD + "".join(sections)


def _rows(stage: StageName) -> str:
    refusing = [rule for rule in RULES if rule.name in names_of(stage)]
    return "".join(f"| `{item.name}` | {item.when} | {_statuses(item)} |\n" for item in refusing)


def _statuses(rule: Rule) -> str:
    return ", ".join(f"`{status}`" for status in rule.statuses)


if __name__ == "__main__":
    DOCUMENT.write_text(rendered(), "utf-8")
