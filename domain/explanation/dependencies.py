"""Explanation of a spawn's dependencies, from the record."""

from collections.abc import Iterator

from pydantic import JsonValue

from domain.explanation.record import RuleExplanation, SpawnRecord
from domain.run.facts import Dependency
from domain.spawn.dependencies import render_dependency
from domain.spawn.dependency_rules import NAMES, WAITS
from domain.values.rules import WAITS_FOR, RuleFinding

_STEP = "admission"


def explain_dependencies(record: SpawnRecord) -> Iterator[RuleExplanation]:
    """Yield an explanation of the dependencies, if any, or of the rule that refused them."""
    dependencies, refused = record.request.dependencies, record.refused
    compared: dict[str, JsonValue] = {
        "dependencies": [
            {**dependency.members(), "metAt": _met_at(record, dependency)}
            for dependency in dependencies
        ],
        "ancestors": [str(ancestor) for ancestor in record.request.ancestors],
    }
    judged = [*(row.rule for row in NAMES), *(row.rule for row in WAITS)]
    why = {rule.name: rule.when for rule in judged}
    if refused is not None and refused.rule in why:
        finding = RuleFinding(compared, why[refused.rule])
        yield record.judged(refused.step, refused.rule, finding, refused, refused=True)
    elif dependencies and not _was_evaluated(record):
        yield record.not_judged(_STEP, WAITS_FOR.name)
    elif dependencies:
        finding = RuleFinding(compared, _describe_dependencies(record))
        yield record.judged(_STEP, WAITS_FOR.name, finding, record.request)


def _was_evaluated(record: SpawnRecord) -> bool:
    is_refused = record.refused is not None and record.refused.step == _STEP
    return record.is_admission_decided and not is_refused


def _describe_dependencies(record: SpawnRecord) -> str:
    runs = ", ".join(
        _name_dependency(record, dependency) for dependency in record.request.dependencies
    )
    return f"it is queued when these runs and all their descendants are done: {runs}"


def _name_dependency(record: SpawnRecord, dependency: Dependency) -> str:
    however = ", with any outcome" if dependency.require == "ended" else ""
    met = _met_at(record, dependency)
    return f"{render_dependency(dependency)}{however}" + (
        f", met at {met}" if met is not None else ""
    )


def _met_at(record: SpawnRecord, dependency: Dependency) -> int | None:
    met = record.met.get(dependency.run_id)
    return met.position if met is not None else None
