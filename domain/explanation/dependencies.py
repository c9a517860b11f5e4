"""What a spawn was to wait for, in words, from what was recorded of it."""

from collections.abc import Iterator

from pydantic import JsonValue

from domain.explanation.record import RuleExplanation, SpawnRecord
from domain.run.facts import Dependency
from domain.spawn.dependencies import render_dependency
from domain.spawn.dependency_rules import NAMES, WAITS
from domain.values.rules import WAITS_FOR, RuleFinding

_STEP = "admission"


def explain_dependencies(record: SpawnRecord) -> Iterator[RuleExplanation]:
    """What it depends on, when it depends on anything, and the rule that refused this."""
    dependencies, refused = record.request.dependencies, record.refused
    compared: dict[str, JsonValue] = {
        "dependencies": [{**one.members(), "metAt": _met_at(record, one)} for one in dependencies],
        "ancestors": [str(one) for one in record.request.ancestors],
    }
    judged = [*(one.rule for one in NAMES), *(one.rule for one in WAITS)]
    why = {one.name: one.when for one in judged}
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
    runs = ", ".join(_name_dependency(record, one) for one in record.request.dependencies)
    return f"it is queued when these are done, with all below them: {runs}"


def _name_dependency(record: SpawnRecord, one: Dependency) -> str:
    however = ", however it ends" if one.require == "ended" else ""
    met = _met_at(record, one)
    return f"{render_dependency(one)}{however}" + (f", met at {met}" if met is not None else "")


def _met_at(record: SpawnRecord, one: Dependency) -> int | None:
    met = record.met.get(one.run_id)
    return met.position if met is not None else None
