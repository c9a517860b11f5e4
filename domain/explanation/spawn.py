"""Why a spawn was permitted, planned or refused as it was: each rule, from what was recorded.

No verdict is made again. The rule that refused is named by the record; those before it passed,
those behind it were not judged, and what an older release did not record is said to be so.
"""

from collections.abc import Iterator, Sequence

from domain.configuration.configuration import Configuration
from domain.explanation.admission import ADMISSION_RULES, DEPENDENCY_RULES, explain_dependencies
from domain.explanation.plan import (
    PLAN_RULES,
    PlanRecord,
    explain_capabilities,
    explain_preamble,
    explain_tools,
)
from domain.explanation.record import EventAtRevision, RuleExplanation, RuleFinding, SpawnRecord
from domain.explanation.steps import (
    NO_SCRIPT,
    STEP_RULES,
    explain_override,
    explain_script,
    explain_steps,
    is_override_expected,
)
from domain.run.events import SessionCreated, SpawnRefused
from domain.run.plan_facts import PlanFacts
from domain.spawn.batch import RULE as BATCH
from domain.values.refusals import ERASED_RULE
from domain.values.text import quote_name

_RULES_IN_ORDER = {*ADMISSION_RULES, *DEPENDENCY_RULES, *PLAN_RULES, *STEP_RULES}
OUTCOME_RULES = ("tools", "capabilities", "preamble")


def explain(
    events: Sequence[EventAtRevision], configuration: Configuration | None = None
) -> tuple[RuleExplanation, ...]:
    """Every rule, in the order in which they are judged, from the events of a spawn so far.

    `configuration` is that of the revision they were decided under, for the lists that are
    recorded with it and not with each spawn; None when it cannot be read. `ValueError` when the
    request is not among the events.
    """
    record = SpawnRecord(events)
    return (
        *_admission(record),
        *_batch(record),
        *explain_dependencies(record),
        *_scripts(record),
        _override(record),
        *_plan(record, configuration),
        *explain_steps(record, configuration),
        *_outcome(record, configuration),
        *_other_refusal(record),
    )


def _admission(record: SpawnRecord) -> Iterator[RuleExplanation]:
    step = "admission"
    refusing = record.refused.rule if record.refused else None
    over = not record.is_admission_decided
    for rule, told in ADMISSION_RULES.items():
        if over:
            yield record.not_judged(step, rule)
            continue
        over = rule == refusing
        by = record.refused if over and record.refused else record.request
        yield record.judged(step, rule, told(record.request.facts, over), by, refused=over)


def _batch(record: SpawnRecord) -> Iterator[RuleExplanation]:
    """With which others it was asked for; one that was refused because of another says so."""
    batch = record.request.batch
    if batch is None or (record.refused is not None and record.refused.rule == BATCH):
        return
    of = f"task {batch.index + 1} of {len(batch.run_ids)} of batch {batch.batch_id}"
    told = RuleFinding(batch.model_dump(mode="json", by_alias=True), of)
    yield record.judged("admission", BATCH, told, record.request)


def _scripts(record: SpawnRecord) -> Iterator[RuleExplanation]:
    step, rule = "scripts", "context_scripts"
    scripts = record.scripts
    if scripts is None:
        yield record.not_judged(step, rule)
        return
    for receipt in scripts.receipts:
        yield record.judged(step, rule, explain_script(receipt), scripts)
    if not scripts.receipts:
        yield record.judged(step, rule, NO_SCRIPT, scripts)


def _override(record: SpawnRecord) -> RuleExplanation:
    step = rule = "override"
    requested = record.request.requested_agent_id
    by = record.overridden or record.scripts
    if by is None or (by is record.scripts and is_override_expected(requested, by.candidates)):
        return record.not_judged(step, rule)
    told = explain_override(requested, record.agent_id, by.candidates)
    return record.judged(step, rule, told, by)


def _plan(record: SpawnRecord, configuration: Configuration | None) -> Iterator[RuleExplanation]:
    step = "preparation"
    refused = record.refused
    by = record.created or refused
    if by is None or not (by is record.created or _is_of_the_plan(by)):
        yield from (record.not_judged(step, rule) for rule in PLAN_RULES)
        return
    refusing = refused.rule if refused else None
    over = False
    for rule in PLAN_RULES:
        is_it = rule == refusing
        told = _plan_finding(record, rule, by.facts, configuration, refused=is_it)
        if is_it or by.facts is None:
            yield record.judged(step, rule, told, by, refused=is_it)
        elif over or (told is None and refused is not None):
            yield record.not_judged(step, rule)
        else:
            yield record.judged(step, rule, told, by)
        over = over or is_it


def _is_of_the_plan(refused: SpawnRefused | SessionCreated) -> bool:
    """Also one by a step behind the plan: it says what the plan was decided from."""
    return isinstance(refused, SpawnRefused) and (
        refused.rule in PLAN_RULES or refused.step == "preparation" or refused.facts is not None
    )


def _plan_finding(
    record: SpawnRecord,
    rule: str,
    facts: PlanFacts | None,
    configuration: Configuration | None,
    *,
    refused: bool,
) -> RuleFinding | None:
    if facts is None and refused and rule == "agent_unknown":
        # The rule says itself what it found.
        facts = PlanFacts(agent_configured=False)
    if facts is None:
        return None
    planning = PlanRecord(
        request=record.request,
        agent_id=record.agent_id,
        facts=facts,
        plan=record.created.plan if record.created else None,
        refused=refused,
        configuration=configuration,
        folder_made=_was_folder_made(record),
    )
    return PLAN_RULES[rule](planning)


def _was_folder_made(record: SpawnRecord) -> bool | None:
    taken = record.taken.get("workspace")
    if taken is not None:
        return taken.made
    return False if record.created is not None else None


def _outcome(record: SpawnRecord, configuration: Configuration | None) -> Iterator[RuleExplanation]:
    step = "preparation"
    created = record.created
    if created is None:
        yield from (record.not_judged(step, rule) for rule in OUTCOME_RULES)
        return
    yield record.judged(step, "tools", explain_tools(created, configuration), created)
    yield record.judged(step, "capabilities", explain_capabilities(created), created)
    told = explain_preamble(record.request.preamble, created)
    yield record.judged(step, "preamble", told, created)


def _other_refusal(record: SpawnRecord) -> Iterator[RuleExplanation]:
    """A refusal by what stands in no order: a stop can come at any time."""
    refused = record.refused
    if refused is None or refused.rule in _RULES_IN_ORDER:
        return
    text = f"refused by {quote_name(refused.rule)}"
    if refused.rule == "stopped":
        text = "the spawn was stopped before its session was created"
    elif refused.rule == ERASED_RULE:
        text = "the texts of its session were erased while it was prepared"
    elif refused.rule == BATCH:
        culprit, index = refused.inputs.get("culprit"), refused.inputs.get("index")
        text = f"task {index} of its batch (run {culprit}) could not be prepared"
    told = RuleFinding({**refused.inputs}, text)
    yield record.judged(refused.step, refused.rule, told, refused, refused=True)
