"""Explanation of the preparation steps, from the events that record them.

Explanations never include content that was sent, returned or copied, only counts and limits.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from domain.configuration.configuration import Configuration
from domain.context.fork import FORK_TOKENS_MAX
from domain.explanation.record import RuleExplanation, SpawnRecord
from domain.run.events import SessionCreated, SpawnRefused, StepTaken
from domain.run.facts import STEP_ORDER, Candidate, ScriptReceipt, StepName
from domain.values.rules import RuleFinding
from domain.values.text import quote_name


@dataclass(frozen=True, slots=True, kw_only=True)
class _StepRecord:
    """Record from which a step is explained.

    `taken` is None if the step was not needed or was not completed.
    """

    record: SpawnRecord
    taken: StepTaken | None
    is_tried: bool
    refused: bool
    configuration: Configuration | None

    @property
    def is_nothing(self) -> bool:
        """Return True if the record proves that the step made nothing."""
        return self.taken is not None and self.taken.outcome == "nothing"


def _thread_binding(step: _StepRecord) -> RuleFinding | None:
    thread, bound = step.record.request.facts.thread, step.taken is not None and step.taken.made
    compared: dict[str, JsonValue] = {"thread": thread, "asked": step.is_tried, "bound": bound}
    if not thread:
        return RuleFinding(compared, "no thread was requested")
    if bound:
        return RuleFinding(compared, "a thread was bound for the child")
    if not step.refused:
        return None
    if not step.is_tried:
        return RuleFinding(compared, "a thread was requested, but no binding hook is configured")
    if step.is_nothing:
        return RuleFinding(compared, "a thread was requested, but none was bound")
    return RuleFinding(compared, "a thread was requested, and it is unknown whether one was bound")


def _context_fork(step: _StepRecord) -> RuleFinding | None:
    record = step.record
    facts = step.taken.fork if step.taken else None
    created = record.created
    effective = facts.mode if facts else created.context_mode if created else None
    context, same = record.request.options.context, record.is_of_same_agent
    compared: dict[str, JsonValue] = {
        "asked": context,
        "thread": record.request.facts.thread,
        "sameAgent": same,
        "entries": facts.entries if facts else None,
        "tokens": facts.tokens if facts else None,
        "tokensMax": FORK_TOKENS_MAX,
        "mode": effective,
    }
    respawn = record.request.respawn
    if respawn is not None and respawn.transcript_up_to is not None:
        compared |= {"respawnedFrom": str(respawn.run_id), "upTo": respawn.transcript_up_to}
        if step.refused:
            text = f"the transcript of run {respawn.run_id} was requested, but could not be read"
            return RuleFinding(compared, text)
    if step.refused:
        why = "could not be created"
        if not same:
            why = "the child's agent is not its requester's"
        elif not step.is_tried:
            why = "its requester has no transcript here"
        return RuleFinding(compared, f"a fork was requested, but {why}")
    if facts is not None and facts.mode == "fork":
        size = f"{facts.entries} entries with {facts.tokens} tokens of at most {FORK_TOKENS_MAX}"
        if respawn is not None and respawn.transcript_up_to is not None:
            size = f"the transcript of run {respawn.run_id}: {size}"
        return RuleFinding(compared, f"the child starts with {size}")
    if facts is not None and facts.tokens is not None:
        text = f"{facts.tokens} tokens are more than {FORK_TOKENS_MAX}"
        return RuleFinding(compared, f"{text}, so the child starts without them")
    if facts is not None:
        return RuleFinding(
            compared, "its requester has no transcript here, so the child starts without one"
        )
    if context == "fork":
        return None
    text = "the child starts without its requester's conversation"
    return RuleFinding(compared, f'{text}, because context is "isolated"' if context else text)


def _attachments(step: _StepRecord) -> RuleFinding | None:
    attachments = step.record.request.attachments
    configuration = step.configuration
    limits = configuration.tools.sessions_spawn.attachments if configuration else None
    # The total of refused files is unknown, because not all were measured.
    total = (
        attachments.total_bytes
        if attachments and attachments.refusal is None
        else None
        if attachments
        else 0
    )
    compared: dict[str, JsonValue] = {
        "count": attachments.count if attachments else 0,
        "totalBytes": total,
        "maxFiles": limits.max_files if limits else None,
        "maxFileBytes": limits.max_file_bytes if limits else None,
        "maxTotalBytes": limits.max_total_bytes if limits else None,
        "written": step.taken is not None and step.taken.outcome == "written",
    }
    if attachments is None:
        return RuleFinding(compared, "no files are attached")
    if attachments.refusal is not None:
        text = f"{attachments.count} file(s) are attached, but not all are accepted"
        return RuleFinding(compared, text)
    text = f"{attachments.count} file(s) with {attachments.total_bytes} bytes in total are attached"
    return RuleFinding(compared, f"{text}, but could not be written" if step.refused else text)


def _context_engine(step: _StepRecord) -> RuleFinding | None:
    taken = step.taken
    prepared = taken is not None and taken.made
    compared: dict[str, JsonValue] = {
        "configured": step.is_tried or step.refused,
        "prepared": prepared,
        "canUndo": taken.can_undo if taken and prepared else None,
    }
    if taken is not None and prepared:
        again = ", and can undo it" if taken.can_undo else ""
        return RuleFinding(compared, f"the context engine prepared the child{again}")
    if step.is_nothing:
        return RuleFinding(compared, "the context engine was not reached")
    if step.refused:
        return RuleFinding(compared, "the context engine did not prepare the child")
    return RuleFinding(compared, "no context engine is configured")


STEP_RULES: Mapping[StepName, Callable[[_StepRecord], RuleFinding | None]] = {
    "thread_binding": _thread_binding,
    "context_fork": _context_fork,
    "attachments": _attachments,
    "context_engine": _context_engine,
}
"""Explanations by step name, in the order in which steps are judged.

The workspace step is explained with the plan, which chooses it.
"""


def explain_steps(
    record: SpawnRecord, configuration: Configuration | None
) -> Iterator[RuleExplanation]:
    """Yield an explanation of each step.

    A step that made something is explained at the event that records it; a step that was not
    needed, at the event that proves it.
    """
    refused = record.refused
    for name, rule in STEP_RULES.items():
        # Keeps the step name that explanations of attachments have always had.
        at = "preparation" if name == "attachments" else name
        is_refused = refused is not None and refused.rule == name
        taken, is_tried = record.taken.get(name), name in record.attempts
        step = _StepRecord(
            record=record,
            taken=taken,
            is_tried=is_tried,
            refused=is_refused,
            configuration=configuration,
        )
        by = refused if is_refused else taken or _event_without(record, name)
        if by is not None:
            yield record.judged(at, name, rule(step), by, refused=is_refused)
        elif is_tried:
            yield record.not_judged(at, name, _under_way(refused))
        else:
            yield record.not_judged(at, name)


def _event_without(record: SpawnRecord, name: StepName) -> SessionCreated | SpawnRefused | None:
    """Return the event proving that the step was not needed.

    That is the creation of the session without it, or the refusal of a later step if the request
    did not ask for this one.
    """
    refused = record.refused
    if record.created is not None or refused is None or name in record.attempts:
        return record.created
    is_later = refused.step in STEP_ORDER and STEP_ORDER.index(refused.step) > STEP_ORDER.index(
        name
    )
    return refused if is_later and _is_unwanted(record, name) else None


def _is_unwanted(record: SpawnRecord, name: StepName) -> bool:
    """Return True if the request did not ask for the step."""
    request = record.request
    if name == "thread_binding":
        return not request.facts.thread
    if name == "context_fork":
        argument = request.options.context
        if request.respawn is not None and request.respawn.transcript_up_to is not None:
            return False
        return argument == "isolated" or (argument is None and not request.facts.thread)
    return name == "attachments" and request.attachments is None


def _under_way(refused: SpawnRefused | None) -> str:
    return (
        f"in progress when {quote_name(refused.rule)} refused the spawn"
        if refused
        else "in progress"
    )


# Explanation of context scripts, and of an agent override.


_OUTCOMES = {
    "injected": "returned a text for the prompt",
    "empty": "returned no text",
    "failed": "failed; it refuses nothing and proposes no agent",
    "skipped": "was skipped",
}
_SHOWN = {
    "id",
    "outcome",
    "durationMs",
    "exitCode",
    "statusCode",
    "outputBytes",
    "candidate",
}
_WINNER = "winner"
_CREDENTIALS_MISSING = "credentials_missing"
NO_SCRIPT = RuleFinding({}, "no context script is configured")


def explain_script(receipt: ScriptReceipt) -> RuleFinding:
    """Explain the outcome of one script. Its texts stay beside the log."""
    text = f"script {quote_name(receipt.id)} {_OUTCOMES[receipt.outcome]}"
    compared: dict[str, JsonValue] = {
        name: value for name, value in receipt.members().items() if name in _SHOWN
    }
    if receipt.reused_from is not None:
        # The recorded outcome belongs to the earlier run.
        text += f"; it was not run: its recorded output for run {receipt.reused_from} was reused"
        compared["reusedFrom"] = str(receipt.reused_from)
    if receipt.candidate is not None:
        text += f", and proposed {quote_name(receipt.candidate)}"
    return RuleFinding(compared, text)


def explain_override(
    requested: str | None, taken: str | None, candidates: tuple[Candidate, ...]
) -> RuleFinding:
    """Explain which agent was chosen among the requested one and the proposed ones.

    Args:
        requested: Requested agent id.
        taken: Agent id that was chosen.
        candidates: Evaluated proposals of the scripts.
    """
    winner = next((candidate for candidate in candidates if candidate.verdict == _WINNER), None)
    if taken != requested:
        text = f"{quote_name(taken)} replaced {quote_name(requested)}"
        text += f" by script {quote_name(winner.script_id)}" if winner else ""
    elif winner is not None:
        text = f"script {quote_name(winner.script_id)} confirmed {quote_name(taken)}"
    elif candidates:
        text = f"no proposed agent can be used, so {quote_name(taken)} is kept"
    else:
        text = f"no script proposed an agent, so {quote_name(taken)} is kept"
    lacking = {
        candidate.agent_id for candidate in candidates if candidate.verdict == _CREDENTIALS_MISSING
    }
    for agent_id in sorted(lacked for lacked in lacking if lacked is not None):
        text += f"; credentials of {quote_name(agent_id)} are missing"
    judged = [candidate.members() for candidate in candidates]
    return RuleFinding({"from": requested, "to": taken, "candidates": [*judged]}, text)


def is_override_expected(requested: str | None, candidates: tuple[Candidate, ...]) -> bool:
    """Return True if the winning proposal names an agent other than the requested one."""
    return any(
        candidate.verdict == _WINNER and candidate.agent_id != requested for candidate in candidates
    )
