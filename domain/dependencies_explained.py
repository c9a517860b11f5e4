"""What a spawn was to wait for, in words, from what was recorded of it."""

from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from domain.explanation.record import SpawnRecord
from domain.rule_explained import RuleExplanation, RuleFinding
from domain.run.waiting_facts import Dependency
from domain.spawn.dependencies import render_dependency

RULE = "dependencies"
_STEP = "admission"

DEPENDENCY_RULES: Mapping[str, str] = {
    "dependency_unknown": "a name stands for no run of the tree",
    "dependency_ambiguous": "a name is the label of several sessions",
    "dependency_cycle": "a run that it would wait for is above the spawn, or waits for one that is",
    "dependency_failed": "a run that it depends on is over, and not as it is required to be",
    "reference_unknown": "a name stands for no run of the session",
    "reference_ambiguous": "a name stands for several runs of the session",
}
"""By the name of the rule: why it refuses."""


def explain_dependencies(record: SpawnRecord) -> Iterator[RuleExplanation]:
    """What it depends on, when it depends on anything, and the rule that refused this."""
    asked, refused = record.request.dependencies, record.refused
    compared: dict[str, JsonValue] = {
        "dependencies": [
            {**one.model_dump(mode="json", by_alias=True), "metAt": _met_at(record, one)}
            for one in asked
        ],
        "ancestors": [str(one) for one in record.request.ancestors],
    }
    if refused is not None and refused.rule in DEPENDENCY_RULES:
        told = RuleFinding(compared, DEPENDENCY_RULES[refused.rule])
        yield record.judged(refused.step, refused.rule, told, refused, refused=True)
    elif asked and not _was_evaluated(record):
        yield record.not_judged(_STEP, RULE)
    elif asked:
        yield record.judged(
            _STEP, RULE, RuleFinding(compared, _describe_dependencies(record)), record.request
        )


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
