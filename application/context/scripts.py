"""Runs the context scripts of a spawn in order, and keeps a receipt of each.

A failed script never fails the spawn: the failure is recorded, and its proposal is ignored.
"""

import asyncio
import logging
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal
from uuid import UUID

from application.context.recorded_scripts import RecordedOutput
from application.context.script_log import ScriptLog
from application.log.texts import TextStore
from application.ports.configurations import PinnedConfiguration
from application.ports.credentials import Credentials
from application.ports.scripts import Mask, ScriptFinished, ScriptRun, ScriptRunner, ScriptSecrets
from domain.configuration.configuration import EffectiveAgent
from domain.configuration.context_scripts import ContextScript
from domain.configuration.secrets import without_url_secrets
from domain.context.agent_override import OverrideCandidate, OverrideChoice, choose_override
from domain.context.script_output import ScriptReading, encode_output, read_script_output
from domain.context.script_request import SpawnVariables
from domain.run.facts import Candidate, ScriptReceipt
from domain.run.state import Run

# Receipts and candidates to record.


def read_finished(script: ContextScript, finished: ScriptFinished) -> ScriptReading:
    """Read the output of a finished script. If it failed, return its error."""
    if finished.error is not None:
        return ScriptReading(error=finished.error)
    return read_script_output(
        script_id=script.id,
        text=finished.output,
        return_key=script.return_key,
        error_key=script.error_key,
        agent_id_override_key=script.agent_id_override_key,
    )


def read_recorded(script: ContextScript, recorded: RecordedOutput) -> ScriptReading:
    """Read a recorded output. If the script failed then, return its error."""
    if recorded.error is not None:
        return ScriptReading(error=recorded.error)
    return read_finished(script, ScriptFinished(raw=recorded.raw))


def script_receipt(
    script: ContextScript, finished: ScriptFinished, reading: ScriptReading, text_store: TextStore
) -> ScriptReceipt:
    """Return the receipt of a script that ran. Its raw output is stored unchanged."""
    outcome: Literal["injected", "empty", "failed"] = "empty"
    if reading.error is not None:
        outcome = "failed"
    elif reading.content:
        outcome = "injected"
    raw = finished.raw
    text, encoding = encode_output(raw)
    return ScriptReceipt(
        id=script.id,
        uri=without_url_secrets(script.uri),
        format=script.format,
        priority=float(script.priority),
        position=script.position,
        outcome=outcome,
        duration_ms=finished.duration_ms,
        exit_code=finished.exit_code,
        status_code=finished.status_code,
        output_bytes=len(raw),
        output=text_store.store("scriptOutput", text) if raw else None,
        output_encoding=encoding if raw else None,
        output_hmac=text_store.hash(raw) if raw else None,
        injected=text_store.store("injected", reading.content) if reading.content else None,
        error=text_store.store("scriptError", reading.error) if reading.error else None,
        candidate=_identifier(reading.override),
    )


def reused_script_receipt(
    script: ContextScript,
    recorded: RecordedOutput,
    reading: ScriptReading,
    earlier: UUID,
    text_store: TextStore,
) -> ScriptReceipt:
    """Return the receipt of a script whose output for the run `earlier` is reused."""
    finished = ScriptFinished(
        raw=recorded.raw,
        exit_code=recorded.receipt.exit_code,
        status_code=recorded.receipt.status_code,
        error=recorded.error,
    )
    receipt = script_receipt(script, finished, reading, text_store)
    return receipt.changed({"reused_from": earlier})


def skipped_script_receipt(script: ContextScript, why: str, text_store: TextStore) -> ScriptReceipt:
    """Return the receipt of a script that was not run."""
    return ScriptReceipt(
        id=script.id,
        uri=without_url_secrets(script.uri),
        format=script.format,
        priority=float(script.priority),
        position=script.position,
        outcome="skipped",
        duration_ms=0,
        error=text_store.store("scriptError", why),
    )


def scripts_proposing_secrets(choice: OverrideChoice, mask: Mask) -> frozenset[str]:
    """Return the ids of scripts whose proposal contains a secret and is not a configured agent."""
    return frozenset(
        candidate.script_id
        for candidate in choice.candidates
        if candidate.reason in ("not_configured", "invalid_agent_id")
        and mask(candidate.proposed) != candidate.proposed
    )


def evaluated_candidates(
    choice: OverrideChoice, unnamed: Collection[str] = frozenset()
) -> tuple[Candidate, ...]:
    """Return the candidates with their verdicts, without the proposals of the scripts in
    `unnamed`."""
    return tuple(
        Candidate(
            script_id=candidate.script_id,
            priority=float(candidate.priority),
            agent_id=None if candidate.script_id in unnamed else candidate.agent_id,
            verdict=candidate.reason if candidate.verdict != "winner" else "winner",
        )
        for candidate in choice.candidates
    )


def remove_proposals(
    receipts: Sequence[ScriptReceipt], unnamed: Collection[str]
) -> tuple[ScriptReceipt, ...]:
    """Return the receipts, without the proposals of the scripts in `unnamed`."""
    return tuple(
        receipt.changed({"candidate": None}) if receipt.id in unnamed else receipt
        for receipt in receipts
    )


def injected_receipts(receipts: Sequence[ScriptReceipt]) -> tuple[ScriptReceipt, ...]:
    """Return the receipts whose content goes into the message, in the order of the scripts."""
    return tuple(receipt for receipt in receipts if receipt.injected is not None)


def _identifier(proposed: str | None) -> str | None:
    """Return the proposal if it has the form of an agent id. Other texts stay in the script's
    output."""
    if proposed is None or len(proposed) > 64 or not proposed.isascii():
        return None
    return proposed if proposed.replace("-", "").replace("_", "").isalnum() else None


_log = logging.getLogger("spawnlog.scripts")


@dataclass(frozen=True, slots=True)
class GatheredContext:
    """The result of a spawn's scripts, ready to be recorded."""

    receipts: tuple[ScriptReceipt, ...]
    candidates: tuple[Candidate, ...]
    override_to: str | None


NOTHING = GatheredContext((), (), None)
"""Result of an agent without scripts."""


class ContextGatherer:
    """Runner of the context scripts that are configured for the requested agent.

    Args:
        credentials: Without it, every proposed agent is assumed to have its credentials.
        secrets: Without it, nothing is masked.
    """

    def __init__(
        self,
        scripts: ScriptRunner,
        credentials: Credentials | None = None,
        secrets: ScriptSecrets | None = None,
    ) -> None:
        self._scripts = scripts
        self._credentials = credentials
        self._secrets = secrets

    async def gather(
        self,
        run: Run,
        agent: EffectiveAgent,
        task: str,
        pinned: PinnedConfiguration,
        text_store: TextStore,
    ) -> GatheredContext:
        """Run the scripts of a spawn that requests this agent, within their limits."""
        requested = run.requested_agent_id
        assert requested is not None
        variables = SpawnVariables(
            target_agent_id=requested,
            task=task,
            requester_agent_id=run.requester.agent_id,
            label=run.label,
            requester_session_key=run.requester.session_key,
            cleanup=run.options.cleanup,
            cfg=pinned.redacted,
        )
        return await self.gather_for(variables, agent, _facts(run), pinned, text_store)

    async def gather_for(
        self,
        variables: SpawnVariables,
        agent: EffectiveAgent,
        facts: Mapping[str, str],
        pinned: PinnedConfiguration,
        text_store: TextStore,
    ) -> GatheredContext:
        """Run the scripts of an agent with these variables and facts."""
        requested, listed = variables.target_agent_id, agent.context_scripts
        log = self._log_for(listed, pinned)
        receipts: list[ScriptReceipt] = []
        candidates: list[OverrideCandidate] = []
        stopped = False
        left_seconds: float = pinned.configuration.spawnlog.scripts_total_seconds
        for script in listed:
            if stopped or left_seconds <= 0:
                why = "an earlier script stopped the rest" if stopped else "no time was left"
                receipts.append(skipped_script_receipt(script, why, text_store))
                continue
            began = time.monotonic()
            finished = await self._run(
                ScriptRun(
                    script=script,
                    variables=variables,
                    pinned=pinned,
                    facts=facts,
                    timeout_seconds=min(script.timeout_seconds, left_seconds),
                    output_bytes_max=pinned.configuration.spawnlog.script_output_bytes_max,
                )
            )
            left_seconds -= time.monotonic() - began
            reading = self._mask_reading(read_finished(script, finished), pinned)
            receipts.append(script_receipt(script, finished, reading, text_store))
            log.tell(script, finished, reading)
            if reading.error is not None:
                stopped = script.error_handling == "stop"
            elif reading.override is not None:
                candidates.append(OverrideCandidate(script.id, script.priority, reading.override))
        choice = await self._choose_agent(requested, candidates, pinned)
        log.tell_choice(listed, choice)
        return self._gathered(receipts, choice, pinned)

    async def reuse(
        self,
        run: Run,
        agent: EffectiveAgent,
        recorded: Mapping[str, RecordedOutput],
        pinned: PinnedConfiguration,
        text_store: TextStore,
    ) -> GatheredContext:
        """Reuse the outputs recorded for the earlier run, without running a script.

        Proposed agents are checked against the current configuration.
        """
        requested, respawn = run.requested_agent_id, run.respawn
        assert requested is not None
        assert respawn is not None
        receipts: list[ScriptReceipt] = []
        candidates: list[OverrideCandidate] = []
        for script in agent.context_scripts:
            found = recorded.get(script.id)
            if found is None:
                why = "an earlier script stopped the rest"
                receipts.append(skipped_script_receipt(script, why, text_store))
                continue
            reading = read_recorded(script, found)
            receipts.append(
                reused_script_receipt(script, found, reading, respawn.run_id, text_store)
            )
            if reading.override is not None:
                candidates.append(OverrideCandidate(script.id, script.priority, reading.override))
        choice = await self._choose_agent(requested, candidates, pinned)
        return self._gathered(receipts, choice, pinned)

    def _gathered(
        self,
        receipts: Sequence[ScriptReceipt],
        choice: OverrideChoice,
        pinned: PinnedConfiguration,
    ) -> GatheredContext:
        unnamed = self._proposals_with_secrets(choice, pinned)
        return GatheredContext(
            remove_proposals(receipts, unnamed),
            evaluated_candidates(choice, unnamed),
            _winning_agent(choice),
        )

    def _mask_reading(self, reading: ScriptReading, pinned: PinnedConfiguration) -> ScriptReading:
        """Mask the error, which may quote output of a program."""
        if self._secrets is None or reading.error is None:
            return reading
        return replace(reading, error=self._secrets.mask_for(pinned)(reading.error))

    def _proposals_with_secrets(
        self, choice: OverrideChoice, pinned: PinnedConfiguration
    ) -> frozenset[str]:
        if self._secrets is None or not choice.candidates:
            return frozenset()
        return scripts_proposing_secrets(choice, self._secrets.mask_for(pinned))

    def _log_for(self, listed: Sequence[ContextScript], pinned: PinnedConfiguration) -> ScriptLog:
        if self._secrets is None or all(script.log is False for script in listed):
            return ScriptLog()
        return ScriptLog(self._secrets.mask_for(pinned))

    async def _choose_agent(
        self, requested: str, candidates: Sequence[OverrideCandidate], pinned: PinnedConfiguration
    ) -> OverrideChoice:
        """Choose the best proposed agent whose credentials can be found."""
        configured = pinned.configuration.agent_ids()
        without: set[str] = set()
        while True:
            choice = choose_override(
                requested, candidates, configured, lambda id: id not in without
            )
            best = choice.winner.agent_id if choice.winner else None
            if best is None or self._credentials is None:
                return choice
            agent = pinned.configuration.effective_agent(best)
            if not (await self._credentials.found(pinned, agent)).missing:
                return choice
            without.add(best)

    async def _run(self, request: ScriptRun) -> ScriptFinished:
        try:
            return await self._scripts.run(request)
        except asyncio.CancelledError:
            raise
        except Exception:
            # The runner should not raise, but a spawn must not depend on that.
            _log.exception("context script %s", request.script.id)
            return ScriptFinished(error="Script could not be run; the server's log says why")


def _facts(run: Run) -> Mapping[str, str]:
    return {
        "SPAWNLOG_RUN_ID": str(run.run_id),
        "SPAWNLOG_REQUESTER_SESSION_KEY": run.requester.session_key,
        "SPAWNLOG_DEPTH": str(run.depth),
        "SPAWNLOG_ATTEMPT": str(run.attempt),
    }


def _winning_agent(choice: OverrideChoice) -> str | None:
    return choice.agent_id if choice.is_override else None
