"""Eligibility of the agent that will run: an ordered table of rules and choices.

The table is judged after the context scripts have run. Each row adds facts that are recorded. The
first rule that refuses decides, and later rows are not evaluated. Explanations are read from the
recorded facts and the recorded refusal; no rule is judged again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import JsonValue

from domain.configuration.configuration import Configuration
from domain.configuration.places import NAMED_SOURCES
from domain.configuration.runtimes import SERVED_RUNTIMES, served_models_of
from domain.plan.request import PlanRequest
from domain.plan.sandbox import missing_sandbox_refusal, sandbox_refusal
from domain.run.facts import AttachmentsRequest, Plan
from domain.run.plan_facts import (
    CredentialFacts,
    PlanFacts,
    SandboxFacts,
    ThinkingFacts,
    TimeoutFacts,
)
from domain.values import rules
from domain.values.record import ContentRef
from domain.values.refusals import Refusal
from domain.values.rules import Rule, RuleFinding
from domain.values.text import quote_name, single_line
from domain.values.thinking_level import normalise_thinking

MISSING_RECORDED_MAX = 50
MISSING_SHOWN_MAX = 5
AGENT_ID_CHARACTERS_MAX = 200
NAMES_SHOWN_MAX = 10
ROOTS_SHOWN_MAX = 10
_SKIPPED = ("not_served", "no_name")


class ExplainedRequest(Protocol):
    """The parts of a request that explanations of plan rules refer to."""

    @property
    def requested_agent_id(self) -> str | None: ...

    @property
    def workspace_argument(self) -> ContentRef | None: ...

    @property
    def attachments(self) -> AttachmentsRequest | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRecord:
    """The record from which a plan rule is explained.

    Attributes:
        request: The request.
        agent_id: Agent that was to run.
        facts: Recorded facts.
        plan: The plan; None if the spawn was refused.
        refused: True if the rule being explained refused.
        configuration: Configuration at the decision's revision; None if it cannot be read.
        folder_made: Whether a step created the child's workspace; None if no step got that far.
    """

    request: ExplainedRequest
    agent_id: str | None
    facts: PlanFacts
    plan: Plan | None
    refused: bool
    configuration: Configuration | None = None
    folder_made: bool | None = None


def _refuses_nothing(_: PlanRequest) -> None:
    return None


@dataclass(frozen=True, slots=True)
class EligibilityRule:
    """A rule of the plan, or a choice, which never refuses.

    Attributes:
        rule: Name and statuses.
        looks_at: Returns the facts to record, by field name.
        compared: Returns the comparison from the record; None if it is not recorded.
        refuses: Returns the refusal, or None if the rule passes.
    """

    rule: Rule
    looks_at: Callable[[PlanRequest], Mapping[str, Any]]
    compared: Callable[[PlanRecord], RuleFinding | None]
    refuses: Callable[[PlanRequest], Refusal | None] = _refuses_nothing


EligibilityTable = Sequence[EligibilityRule]


def judge_eligibility(
    table: EligibilityTable, request: PlanRequest
) -> tuple[PlanFacts, Refusal | None]:
    """Evaluate a table in order until a rule refuses.

    Returns:
        The facts examined so far, and the refusal; None if no rule refuses.
    """
    facts: dict[str, Any] = {}
    for row in table:
        facts.update(row.looks_at(request))
        refusal = row.refuses(request)
        if refusal is not None:
            return PlanFacts(**facts), refusal
    return PlanFacts(**facts), None


def _not_configured(request: PlanRequest) -> Refusal | None:
    shape, agent = request.shape, request.agent
    if agent.is_configured:
        return None
    shown = single_line(agent.id, characters_max=AGENT_ID_CHARACTERS_MAX)
    text = f'Agent "{shown}" is not configured, and no context script named a configured one.'
    if shape.requested_agent_id not in (None, agent.id):
        text = (
            f'Agent "{shown}", named in place of "{shape.requested_agent_id}", is not configured.'
        )
    advice = "Use agents_list to discover valid targets, or add it to agents.list."
    if shape.is_message:
        text = f'Agent "{shown}" is no longer configured.'
        advice = "Add it to agents.list, and send the message again."
    return rules.AGENT_UNKNOWN.refusal(f"{text} {advice}")


def _agent_unknown(record: PlanRecord) -> RuleFinding | None:
    configured = record.facts.agent_configured
    if configured is None:
        return None
    requested = record.request.requested_agent_id
    how = "is configured" if configured else "is not configured"
    instead = (
        f", named in place of {quote_name(requested)}," if requested != record.agent_id else ""
    )
    return RuleFinding(
        {"agentId": record.agent_id, "requestedAgentId": requested, "configured": configured},
        f"agent {quote_name(record.agent_id)}{instead} {how}",
    )


def _sandbox_refusal(request: PlanRequest) -> Refusal | None:
    facts = request.sandbox
    return sandbox_refusal(facts) or missing_sandbox_refusal(facts, request.agent.id)


def _sandbox(record: PlanRecord) -> RuleFinding | None:
    facts = record.facts.sandbox
    if facts is None:
        return None
    return RuleFinding(facts.members(), _sandbox_text(facts, record.refused))


def _sandbox_text(facts: SandboxFacts, refused: bool) -> str:
    mode = f"sandbox.mode {quote_name(facts.mode)}"
    if facts.child_sandboxed:
        provides = "does not set providesSandbox" if refused else "provides one"
        return f"{mode} requires a sandbox for the child, and its runtime {provides}"
    if not refused:
        return f"{mode} requires no sandbox for the child, and none is requested"
    why = (
        ("the requester is in a sandbox")
        if facts.requester_sandboxed
        else ("the request requires a sandbox")
    )
    return f"{mode} requires no sandbox for the child, but {why}"


def _model_facts(request: PlanRequest) -> Mapping[str, Any]:
    served = served_models_of(request.agent.runtime)
    return {"models": request.model.verdicts, "served_models": served}


def _model(record: PlanRecord) -> RuleFinding | None:
    models = record.facts.models
    if models is None:
        return None
    served = record.facts.served_models
    taken = next((model for model in models if model.verdict == "taken"), None)
    skipped = sum(model.verdict in _SKIPPED for model in models)
    compared: dict[str, JsonValue] = {
        "candidates": [model.members() for model in models],
        "servedModels": None if served is None else [*served],
        "chosen": taken.reference if taken else None,
        "applied": record.plan.model_applied if record.plan else None,
    }
    text = "no model is set, so the runtime chooses"
    if taken is not None:
        text = f"{quote_name(taken.reference)} is used, set by {_source_text(taken.source)}"
    elif skipped:
        text = "none of the models that are set can be used, so the runtime chooses"
    return RuleFinding(compared, f"{text}; {skipped} skipped" if skipped else text)


def _thinking_facts(request: PlanRequest) -> Mapping[str, Any]:
    agent = request.agent
    words = (
        request.requested_thinking,
        agent.thinking,
        agent.defaults.thinking,
        request.inherited_thinking,
    )
    # An invalid word may be any text, so it must not enter an event.
    levels = [normalise_thinking(word) if word else None for word in words]
    facts = ThinkingFacts(
        argument=levels[0],
        agent_subagents=levels[1],
        defaults_subagents=levels[2],
        caller=levels[3],
        taken_from=request.thinking.source,
    )
    return {"thinking": facts}


def _source_text(source: str | None) -> str:
    place = NAMED_SOURCES.get(source or "")
    return place.words if place else source or "an unknown source"


def _invalid_thinking(request: PlanRequest) -> Refusal | None:
    error = request.thinking.error
    return rules.THINKING.refusal(error) if error is not None else None


def _thinking(record: PlanRecord) -> RuleFinding | None:
    facts = record.facts.thinking
    if facts is None:
        return None
    level = record.plan.thinking if record.plan else None
    compared: dict[str, JsonValue] = {**facts.members(), "level": level}
    if record.refused:
        text = f"the value set by {_source_text(facts.taken_from)} is not a thinking level"
    elif facts.taken_from is None:
        text = "no thinking level is set, so the runtime chooses"
    else:
        named = f"level {quote_name(level)}" if level else "the level"
        text = f"{named} set by {_source_text(facts.taken_from)} is used"
    return RuleFinding(compared, text)


def _timeout_facts(request: PlanRequest) -> Mapping[str, Any]:
    facts = TimeoutFacts(
        argument=request.shape.options.run_timeout_seconds,
        configured=request.agent.defaults.run_timeout_seconds,
    )
    return {"run_timeout": facts}


def _run_timeout(record: PlanRecord) -> RuleFinding | None:
    facts = record.facts.run_timeout
    if facts is None:
        return None
    plan = record.plan
    requested = "none" if facts.argument is None else _seconds(facts.argument)
    text = f"the request asks for {requested}, and {_seconds(facts.configured)} is configured"
    if plan is not None:
        text = f"{_seconds(plan.run_timeout_seconds)}: {text}"
    return RuleFinding(
        {
            "argument": facts.argument,
            "configured": facts.configured,
            "seconds": plan.run_timeout_seconds if plan else None,
            "source": plan.run_timeout_source if plan else None,
        },
        text,
    )


def _seconds(value: float) -> str:
    number = int(value) if float(value).is_integer() else value
    return f"{number} s" if value else "no limit"


def _runtime_facts(request: PlanRequest) -> Mapping[str, Any]:
    runtime = request.agent.runtime
    return {"runtime": runtime.type if runtime else None}


def _unserved_runtime(request: PlanRequest) -> Refusal | None:
    runtime = request.agent.runtime
    if runtime is not None and runtime.type in SERVED_RUNTIMES:
        return None
    kind = f'a "{runtime.type}" runtime, which is not supported yet' if runtime else "no runtime"
    return rules.RUNTIME.refusal(
        f'Agent "{request.agent.id}" has {kind}. Give it a runtime of type'
        f" {' or '.join(SERVED_RUNTIMES)} in agents.list or agents.defaults."
    )


def _runtime(record: PlanRecord) -> RuleFinding | None:
    kind = record.facts.runtime
    if kind is None and not record.refused:
        return None
    text = (
        "the agent has no runtime" if kind is None else f"the agent's runtime is {quote_name(kind)}"
    )
    if record.refused and kind is not None:
        text += ", which is not supported"
    return RuleFinding({"type": kind}, text)


def _credential_facts(request: PlanRequest) -> Mapping[str, Any]:
    missing = dict.fromkeys(credential.name for credential in request.credentials.missing)
    facts = CredentialFacts(
        profile_ids=request.credentials.profile_ids,
        missing=tuple(missing)[:MISSING_RECORDED_MAX],
    )
    return {"credentials": facts}


def _missing_credentials(request: PlanRequest) -> Refusal | None:
    missing = request.credentials.missing
    if not missing:
        return None
    texts = list(dict.fromkeys(credential.text for credential in missing))
    listed = "; ".join(texts[:MISSING_SHOWN_MAX])
    if len(texts) > MISSING_SHOWN_MAX:
        listed += f"; and {len(texts) - MISSING_SHOWN_MAX} more"
    them = "it" if len(texts) == 1 else "them"
    unset = all(credential.is_unset for credential in missing)
    advice = f"Set {them} in the environment of" if unset else f"Fix {them} on"
    return rules.CREDENTIALS.refusal(
        f'The credentials of agent "{request.agent.id}" are unavailable: {listed}. {advice}'
        " every server, or name another agent."
    )


def _credentials(record: PlanRecord) -> RuleFinding | None:
    facts = record.facts.credentials
    if facts is None:
        return None
    given = record.plan.auth_profiles if record.plan else ()
    compared: dict[str, JsonValue] = {
        "profileIds": [*facts.profile_ids],
        "given": [*given] if record.plan else None,
        "missing": [*facts.missing],
    }
    if facts.missing:
        text = f"unavailable: {_names(facts.missing)}"
    elif given:
        text = f"the child gets {_names(given)}"
    elif facts.profile_ids:
        text = f"found: {_names(facts.profile_ids)}"
        text += "; the child gets none" if record.plan else ""
    else:
        text = "there are no profiles for the agent's runtime"
    return RuleFinding(compared, text)


def _names(names: tuple[str, ...]) -> str:
    shown = ", ".join(quote_name(name) for name in names[:NAMES_SHOWN_MAX])
    more = len(names) - NAMES_SHOWN_MAX
    return f"{shown} and {more} more" if more > 0 else shown


def _unusable_workspace(request: PlanRequest) -> Refusal | None:
    text = request.workspace.unusable
    return rules.WORKSPACE.refusal(text) if text is not None else None


def _workspace(record: PlanRecord) -> RuleFinding | None:
    facts = record.facts.workspace
    if facts is None:
        return None
    requested = record.request.workspace_argument is not None
    configuration = record.configuration
    roots = configuration.spawnlog.workspace_roots if configuration else None
    compared: dict[str, JsonValue] = {
        **facts.members(),
        "given": requested,
        # Unexpanded, as in the file: the values of `${NAME}` at that time are not recorded.
        "workspaceRoots": None if roots is None else [*roots],
        "made": record.folder_made,
    }
    text = f"the folder of the {facts.source} " + (
        "cannot be used" if record.refused else "is used"
    )
    text += ", and was created for the child" if record.folder_made else ""
    # Roots only apply to a requested workspace, and only if none is recorded for the requester.
    if roots is not None and requested and facts.recorded is None and facts.source == "requester":
        shown = ", ".join(quote_name(root) for root in roots[:ROOTS_SHOWN_MAX]) or "none"
        more = len(roots) - ROOTS_SHOWN_MAX
        text += f"; workspaceRoots: {shown}" + (f", and {more} more" if more > 0 else "")
    return RuleFinding(compared, text)


def _same_workspace(record: PlanRecord) -> RuleFinding | None:
    facts = record.facts.workspace
    if facts is None:
        return None
    text = "the folder of the previous run is kept"
    if facts.chosen is None:
        text = "the previous run has no recorded folder, and none is chosen"
    return RuleFinding({**facts.members(), "kept": True}, text)


_BEFORE_WORKSPACE = (
    EligibilityRule(
        rules.AGENT_UNKNOWN,
        lambda request: {"agent_configured": request.agent.is_configured},
        _agent_unknown,
        _not_configured,
    ),
    EligibilityRule(
        rules.SANDBOX, lambda request: {"sandbox": request.sandbox}, _sandbox, _sandbox_refusal
    ),
    EligibilityRule(rules.MODEL, _model_facts, _model),
    EligibilityRule(rules.THINKING, _thinking_facts, _thinking, _invalid_thinking),
    EligibilityRule(rules.RUN_TIMEOUT, _timeout_facts, _run_timeout),
    EligibilityRule(rules.RUNTIME, _runtime_facts, _runtime, _unserved_runtime),
    EligibilityRule(rules.CREDENTIALS, _credential_facts, _credentials, _missing_credentials),
)


def _workspace_facts(request: PlanRequest) -> Mapping[str, Any]:
    return {"workspace": request.workspace.facts}


ELIGIBILITY: EligibilityTable = (
    *_BEFORE_WORKSPACE,
    EligibilityRule(rules.WORKSPACE, _workspace_facts, _workspace, _unusable_workspace),
)
"""Rules for a spawn, in the order in which they are judged. The workspace is last."""

CONTINUED_ELIGIBILITY: EligibilityTable = (
    *_BEFORE_WORKSPACE,
    EligibilityRule(rules.WORKSPACE, _workspace_facts, _same_workspace),
)
"""Rules for a message: the same as for a spawn, except that the workspace is kept."""
