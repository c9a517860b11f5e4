"""Explanation of an accepted or refused spawn, rule by rule, from the record.

No rule is judged again. The record names the rule that refused; rules before it passed, and rules
after it were not judged. Facts that an older release did not record are reported as such.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from domain.configuration.configuration import Configuration
from domain.explanation.admission import explain_admission
from domain.explanation.dependencies import explain_dependencies
from domain.explanation.plan import (
    explain_capabilities,
    explain_plan,
    explain_preamble,
    explain_tools,
)
from domain.explanation.record import EventAtRevision, RuleExplanation, SpawnRecord
from domain.explanation.steps import (
    NO_SCRIPT,
    explain_override,
    explain_script,
    explain_steps,
    is_override_expected,
)
from domain.plan.eligibility import ELIGIBILITY, PlanRecord
from domain.run.events import SessionCreated
from domain.run.plan_facts import PlanFacts
from domain.spawn.admission import ADMISSION
from domain.spawn.stages import SPAWN_STAGES, StageName, names_of
from domain.values import rules
from domain.values.rules import Rule, RuleFinding
from domain.values.text import quote_name


def explain(
    events: Sequence[EventAtRevision], configuration: Configuration | None = None
) -> tuple[RuleExplanation, ...]:
    """Explain every rule for a spawn, in the order in which they are judged.

    Args:
        events: Events of the spawn so far.
        configuration: Configuration at the decision's revision, for lists that are not recorded
            with each spawn; None if it cannot be read.

    Raises:
        ValueError: `events` does not include the request.
    """
    record = SpawnRecord(events)
    return tuple(
        explanation
        for stage in SPAWN_STAGES
        for explanation in _EXPLAINERS[stage.name](record, configuration)
    )


def _admission(record: SpawnRecord, _: Configuration | None) -> Iterator[RuleExplanation]:
    return explain_admission(record, ADMISSION, record.request.facts, record.request)


def _batch(record: SpawnRecord, _: Configuration | None) -> Iterator[RuleExplanation]:
    """Explain the batch of the request. A refusal because of the batch is explained by `_other`."""
    batch = record.request.batch
    if batch is None or record.is_refused_by(rules.BATCH):
        return
    of = f"task {batch.index + 1} of {len(batch.run_ids)} of batch {batch.batch_id}"
    finding = RuleFinding(batch.members(), of)
    yield record.judged("admission", rules.BATCH.name, finding, record.request)


def _dependencies(record: SpawnRecord, _: Configuration | None) -> Iterator[RuleExplanation]:
    return explain_dependencies(record)


def _scripts(record: SpawnRecord, _: Configuration | None) -> Iterator[RuleExplanation]:
    step, rule = "scripts", rules.CONTEXT_SCRIPTS.name
    scripts = record.scripts
    if scripts is None:
        yield record.not_judged(step, rule)
        return
    for receipt in scripts.receipts:
        yield record.judged(step, rule, explain_script(receipt), scripts)
    if not scripts.receipts:
        yield record.judged(step, rule, NO_SCRIPT, scripts)


def _override(record: SpawnRecord, _: Configuration | None) -> Iterator[RuleExplanation]:
    step = rule = rules.OVERRIDE.name
    requested = record.request.requested_agent_id
    by = record.overridden or record.scripts
    if by is None or (by is record.scripts and is_override_expected(requested, by.candidates)):
        yield record.not_judged(step, rule)
        return
    finding = explain_override(requested, record.agent_id, by.candidates)
    yield record.judged(step, rule, finding, by)


def _plan(record: SpawnRecord, configuration: Configuration | None) -> Iterator[RuleExplanation]:
    def planning(facts: PlanFacts, refused: bool) -> PlanRecord:
        return PlanRecord(
            request=record.request,
            agent_id=record.agent_id,
            facts=facts,
            plan=record.created.plan if record.created else None,
            refused=refused,
            configuration=configuration,
            folder_made=_was_folder_made(record),
        )

    by = record.created or (record.refused if _is_refused_by_plan(record) else None)
    return explain_plan(record, ELIGIBILITY, by, planning)


def _is_refused_by_plan(record: SpawnRecord) -> bool:
    """Return True if the refusal records plan facts, even if a later step refused."""
    refused = record.refused
    return refused is not None and (
        refused.rule in names_of("plan")
        or refused.step == "preparation"
        or refused.facts is not None
    )


def _was_folder_made(record: SpawnRecord) -> bool | None:
    taken = record.taken.get("workspace")
    if taken is not None:
        return taken.made
    return False if record.created is not None else None


def _outcome(record: SpawnRecord, configuration: Configuration | None) -> Iterator[RuleExplanation]:
    step, created = "preparation", record.created
    for rule in next(stage.rules for stage in SPAWN_STAGES if stage.name == "outcome"):
        if created is None:
            yield record.not_judged(step, rule.name)
            continue
        finding = _OUTCOMES[rule](record, created, configuration)
        yield record.judged(step, rule.name, finding, created)


def _other(record: SpawnRecord, _: Configuration | None) -> Iterator[RuleExplanation]:
    """Explain a refusal that has no fixed place in the order, such as a stop."""
    refused = record.refused
    if refused is None or refused.rule in _IN_ORDER:
        return
    text = f"refused by {quote_name(refused.rule)}"
    if record.is_refused_by(rules.STOPPED):
        text = rules.STOPPED.when
    elif record.is_refused_by(rules.ERASED):
        text = rules.ERASED.when
    elif record.is_refused_by(rules.BATCH):
        culprit, index = refused.inputs.get("culprit"), refused.inputs.get("index")
        text = f"task {index} of the batch (run {culprit}) could not be prepared"
    finding = RuleFinding({**refused.inputs}, text)
    yield record.judged(refused.step, refused.rule, finding, refused, refused=True)


_IN_ORDER = names_of("admission", "dependencies", "plan", "steps") - {rules.SHARED_CONTEXT.name}
_OUTCOMES: Mapping[
    Rule, Callable[[SpawnRecord, SessionCreated, Configuration | None], RuleFinding | None]
] = {
    rules.TOOLS: lambda _, created, under: explain_tools(created, under),
    rules.CAPABILITIES: lambda _, created, __: explain_capabilities(created, created.depth),
    rules.PREAMBLE: lambda record, created, _: explain_preamble(record.request.preamble, created),
}
_EXPLAINERS: Mapping[
    StageName, Callable[[SpawnRecord, Configuration | None], Iterator[RuleExplanation]]
] = {
    "admission": _admission,
    "batch": _batch,
    "dependencies": _dependencies,
    "scripts": _scripts,
    "override": _override,
    "plan": _plan,
    "steps": explain_steps,
    "outcome": _outcome,
    "other": _other,
}
