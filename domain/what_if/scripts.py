"""What-if for context scripts: replay order, contributions and overrides from recorded output.

No script is run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from uuid import UUID

from domain.configuration.configuration import Configuration
from domain.configuration.context_scripts import ContextScript
from domain.context.agent_override import OverrideCandidate, choose_override
from domain.context.script_output import ScriptReading, decode_output, read_script_output
from domain.run.facts import ScriptReceipt
from domain.values.record import ContentRef
from domain.what_if.record import RecordedDecision
from domain.what_if.verdict import NotReplayableError

CREDENTIALS_MISSING = "credentials_missing"
_KEYS = ("return_key", "error_key", "agent_id_override_key")
_CALLED_BY = ("uri", "format", "method", "arg_map")


@dataclass(frozen=True, slots=True)
class ScriptContribution:
    """Text that a script adds to the message.

    `injected` is the recorded text if it is unchanged; otherwise `text` is the new one.
    """

    script_id: str
    position: str
    injected: ContentRef | None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class ReplayedScripts:
    """Result of a spawn's scripts: contributions in script order, and the override, if any."""

    contributions: tuple[ScriptContribution, ...] = ()
    override_to: str | None = None


def recorded_scripts(record: RecordedDecision) -> ReplayedScripts:
    """Return the recorded result."""
    receipts = record.scripts.receipts if record.scripts is not None else ()
    override = record.overridden.to_agent_id if record.overridden is not None else None
    return ReplayedScripts(
        tuple(_recorded(receipt) for receipt in receipts if receipt.injected), override
    )


def _recorded(receipt: ScriptReceipt) -> ScriptContribution:
    return ScriptContribution(receipt.id, receipt.position, receipt.injected)


@dataclass(frozen=True, slots=True)
class ScriptsUnder:
    """Scripts of an agent under one configuration, with their common limits.

    `cfg` is the JSON text of the configuration that scripts receive.
    """

    listed: tuple[ContextScript, ...]
    total_seconds: float
    output_bytes_max: int
    agent_ids: tuple[str, ...]
    cfg: str

    @property
    def receives_cfg(self) -> bool:
        """Return True if a script receives the configuration (`cfg`)."""
        return any("cfg" in script.arg_map.values() for script in self.listed)


def scripts_under(configuration: Configuration, cfg: str, requested_agent_id: str) -> ScriptsUnder:
    """Return the scripts that run if this agent is requested."""
    settings = configuration.spawnlog
    return ScriptsUnder(
        listed=configuration.effective_agent(requested_agent_id).context_scripts,
        total_seconds=settings.scripts_total_seconds,
        output_bytes_max=settings.script_output_bytes_max,
        agent_ids=configuration.agent_ids(),
        cfg=cfg,
    )


@dataclass(frozen=True, eq=False)
class ScriptsChange:
    """Scripts of an agent, then and now."""

    then: ScriptsUnder
    now: ScriptsUnder

    @cached_property
    def is_nothing(self) -> bool:
        """Return True if every script would run, and its output be read, as before."""
        then, now = self.then, self.now
        if then.listed != now.listed or (not then.listed and not now.listed):
            return then.listed == now.listed
        if [list(script.arg_map) for script in then.listed] != [
            list(script.arg_map) for script in now.listed
        ]:
            # Equal mappings may list their arguments in another order, which scripts see.
            return False
        return (then.total_seconds, then.output_bytes_max) == (
            now.total_seconds,
            now.output_bytes_max,
        ) and not (now.receives_cfg and then.cfg != now.cfg)

    @cached_property
    def names_same_agents(self) -> bool:
        """Return True if the same agents can be named by a script."""
        return set(self.then.agent_ids) == set(self.now.agent_ids)


def outputs_needed(record: RecordedDecision, change: ScriptsChange) -> list[ContentRef]:
    """Return the recorded outputs that have to be parsed again, and the texts they gave."""
    if record.scripts is None or change.is_nothing:
        return []
    then, now = change.then, change.now
    before = {script.id: script for script in then.listed}
    receipts = {receipt.id: receipt for receipt in record.scripts.receipts}
    refs = []
    for script in now.listed:
        old, receipt = before.get(script.id), receipts.get(script.id)
        if old is not None and receipt is not None and not _is_read_alike(old, script):
            refs += [ref for ref in (receipt.output, receipt.injected) if ref is not None]
    return refs


def replay_scripts(
    record: RecordedDecision, change: ScriptsChange, texts: Mapping[UUID, str]
) -> ReplayedScripts:
    """Return the result of the scripts under the new configuration, from recorded output.

    Args:
        record: The decision, with script receipts.
        change: The scripts of the requested agent, then and now.
        texts: Texts by content id; erased ones are absent.

    Raises:
        NotReplayableError: The record does not show the output of some scripts; each one is named.
    """
    assert record.scripts is not None
    requested = record.run.requested_agent_id
    assert requested is not None
    then, now, unchanged = change.then, change.now, change.is_nothing
    if unchanged and change.names_same_agents:
        return recorded_scripts(record)
    receipts = {receipt.id: receipt for receipt in record.scripts.receipts}
    contributions: list[ScriptContribution] = []
    candidates: list[OverrideCandidate] = []
    missing: list[str] = []
    ran: list[ScriptReceipt] = []
    before = {script.id: script for script in then.listed}
    stopped = False
    for script in now.listed:
        receipt = receipts.get(script.id)
        if stopped or (unchanged and receipt is not None and receipt.outcome == "skipped"):
            continue
        why = _missing_input(before.get(script.id), script, receipt, then, now)
        if why is None and receipt is not None and _was_short_of_time(receipt, then, receipts, ran):
            why = _SHORT_OF_TIME
        if why is not None or receipt is None:
            missing.append(f'context script "{script.id}": {why}')
            continue
        ran.append(receipt)
        reading, is_recorded = _reading(before[script.id], script, receipt, texts)
        if reading.error is not None:
            stopped = script.error_handling == "stop"
            continue
        if is_recorded and receipt.injected is not None:
            contributions.append(ScriptContribution(script.id, script.position, receipt.injected))
        elif reading.content:
            contributions.append(_reread(script, receipt, reading.content, texts))
        if reading.override is not None:
            candidates.append(OverrideCandidate(script.id, script.priority, reading.override))
    if missing:
        raise NotReplayableError(*missing)
    if not unchanged:
        _require_total_time(now, ran)
    without = {
        candidate.agent_id
        for candidate in record.scripts.candidates
        if candidate.verdict == CREDENTIALS_MISSING and candidate.agent_id is not None
    }
    choice = choose_override(
        requested, candidates, now.agent_ids, lambda agent_id: agent_id not in without
    )
    return ReplayedScripts(tuple(contributions), choice.agent_id if choice.is_override else None)


def _missing_input(
    old: ContextScript | None,
    script: ContextScript,
    receipt: ScriptReceipt | None,
    then: ScriptsUnder,
    now: ScriptsUnder,
) -> str | None:
    """Return why the record does not show a script's new result, or None if it does."""
    if old is None or receipt is None:
        return "it is new, so there is no recorded output"
    changed = [name for name in _CALLED_BY if getattr(old, name) != getattr(script, name)]
    if list(old.arg_map) != list(script.arg_map) and "arg_map" not in changed:
        changed.append("arg_map")
    if changed:
        words = ", ".join(_WORDS[name] for name in changed)
        return f"its {words} changed, so it would be called differently"
    if receipt.outcome == "skipped":
        return "it was not run then"
    if "cfg" in script.arg_map.values() and then.cfg != now.cfg:
        return "it receives the configuration (cfg), which changed"
    return _limit_that_decides(old, script, receipt, then, now)


_NEARLY = 0.95
"""Fraction of a timeout: a script that took this long may have been ended by it."""
_SHORT_OF_TIME = "it may have failed because the total time ran out (scriptsTotalSeconds)"
_WORDS = {"uri": "uri", "format": "format", "method": "method", "arg_map": "argMap"}


def _limit_that_decides(
    old: ContextScript,
    script: ContextScript,
    receipt: ScriptReceipt,
    then: ScriptsUnder,
    now: ScriptsUnder,
) -> str | None:
    seconds = receipt.duration_ms / 1000
    failed = receipt.outcome == "failed"
    if old.timeout_seconds != script.timeout_seconds and (
        seconds >= script.timeout_seconds or (failed and seconds >= old.timeout_seconds * _NEARLY)
    ):
        return "it took longer than the new timeout, or was ended by the old one"
    if then.total_seconds != now.total_seconds and failed and not _ended_well(receipt):
        return _SHORT_OF_TIME
    if then.output_bytes_max != now.output_bytes_max and (
        receipt.output_bytes >= min(then.output_bytes_max, now.output_bytes_max)
    ):
        return "the size of its output is at or near the limit (scriptOutputBytesMax)"
    return None


def _was_short_of_time(
    receipt: ScriptReceipt,
    then: ScriptsUnder,
    receipts: Mapping[str, ScriptReceipt],
    ran: Sequence[ScriptReceipt],
) -> bool:
    """Return True if a script may have failed for lack of total time, and others precede it now.

    `ran` holds the receipts of the scripts that precede it now.
    """
    if receipt.outcome != "failed" or _ended_well(receipt):
        return False
    order = [script.id for script in then.listed]
    in_front = [
        receipts[script_id]
        for script_id in order[: order.index(receipt.id)]
        if script_id in receipts
    ]
    used = sum(earlier.duration_ms for earlier in (*in_front, receipt)) / 1000
    if used < then.total_seconds * _NEARLY:
        return False
    return {earlier.id for earlier in in_front} != {earlier.id for earlier in ran}


def _ended_well(receipt: ScriptReceipt) -> bool:
    """Return True if the script itself succeeded, so that any failure came from its output."""
    if receipt.status_code is not None:
        return 200 <= receipt.status_code < 300
    return receipt.exit_code == 0


def _require_total_time(now: ScriptsUnder, ran: Sequence[ScriptReceipt]) -> None:
    took = sum(receipt.duration_ms for receipt in ran) / 1000
    if took >= now.total_seconds:
        raise NotReplayableError(
            f"context scripts: they took {took:.1f} s in total, but the limit is"
            f" {now.total_seconds:g} s (scriptsTotalSeconds)"
        )


def _is_read_alike(old: ContextScript, script: ContextScript) -> bool:
    return all(getattr(old, name) == getattr(script, name) for name in _KEYS)


def _reading(
    old: ContextScript, script: ContextScript, receipt: ScriptReceipt, texts: Mapping[UUID, str]
) -> tuple[ScriptReading, bool]:
    """Read the recorded output by the new settings. Return True beside it if nothing changed."""
    failed = receipt.outcome == "failed"
    if _is_read_alike(old, script) or (failed and not _ended_well(receipt)):
        if failed:
            return ScriptReading(error="failed"), True
        return ScriptReading(override=receipt.candidate), True
    if receipt.output is None:
        return ScriptReading(), True
    kept = texts.get(receipt.output.id)
    if kept is None:
        raise NotReplayableError(f'context script "{script.id}": its output was erased')
    text = decode_output(kept, receipt.output_encoding)
    if failed and _read_by(old, text).error is None:
        # The output reported no error, so the script failed because it was cut off.
        return ScriptReading(error="failed"), True
    return _read_by(script, text), False


def _read_by(script: ContextScript, text: str) -> ScriptReading:
    return read_script_output(
        script_id=script.id,
        text=text,
        return_key=script.return_key,
        error_key=script.error_key,
        agent_id_override_key=script.agent_id_override_key,
    )


def _reread(
    script: ContextScript, receipt: ScriptReceipt, content: str, texts: Mapping[UUID, str]
) -> ScriptContribution:
    """Return the new contribution, with the recorded text if it is the same."""
    injected = receipt.injected
    if injected is not None and texts.get(injected.id) == content:
        return ScriptContribution(script.id, script.position, injected)
    return ScriptContribution(script.id, script.position, None, content)
