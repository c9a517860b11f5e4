"""Runs the context scripts of a spawn, one after the other, and keeps a receipt of each.

No script failure ever fails the spawn: it is recorded, and what the script proposed is void.
"""

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from application.keeping import Keeper
from application.ports.configurations import PinnedConfiguration
from application.ports.credentials import Credentials
from application.ports.scripts import ScriptFinished, ScriptRun, ScriptRunner
from domain.agent_override import OverrideCandidate, OverrideChoice, choose_override, log_line
from domain.configuration.context_scripts import ContextScript
from domain.configuration.secret_urls import without_url_secrets
from domain.run.facts import Candidate, ScriptReceipt
from domain.run.state import Run
from domain.script_arguments import SpawnVariables
from domain.script_output import ScriptReading, read_script_output

_log = logging.getLogger("spawnlog.scripts")

SCRIPTS_MAX = 50


@dataclass(frozen=True, slots=True)
class Gathered:
    """What the scripts gave, ready to be recorded."""

    receipts: tuple[ScriptReceipt, ...]
    candidates: tuple[Candidate, ...]
    override_to: str | None


NOTHING = Gathered((), (), None)
"""What comes of no scripts."""


class ContextGathering:
    """Runs what the configuration lists for the requested agent. Without `credentials` every agent
    that a script proposes is taken to have its own."""

    def __init__(self, scripts: ScriptRunner, credentials: Credentials | None = None) -> None:
        self._scripts = scripts
        self._credentials = credentials

    def listed(self, run: Run, pinned: PinnedConfiguration) -> tuple[ContextScript, ...]:
        """The scripts of a spawn, in the order they run."""
        assert run.requested_agent_id is not None
        return pinned.configuration.context_scripts_for(run.requested_agent_id)[:SCRIPTS_MAX]

    async def gather(
        self, run: Run, task: str, pinned: PinnedConfiguration, keeper: Keeper
    ) -> Gathered:
        """Run the scripts within their limits."""
        requested = run.requested_agent_id
        assert requested is not None
        configuration = pinned.configuration
        listed = self.listed(run, pinned)
        variables = SpawnVariables(
            target_agent_id=requested,
            task=task,
            requester_agent_id=run.requester.agent_id,
            label=run.label,
            requester_session_key=run.requester.session_key,
            cleanup=run.options.cleanup,
            cfg=pinned.redacted,
        )
        receipts: list[ScriptReceipt] = []
        candidates: list[OverrideCandidate] = []
        stopped = False
        left_seconds = configuration.spawnlog.scripts_total_seconds
        for script in listed:
            if stopped or left_seconds <= 0:
                why = "an earlier script stopped the rest" if stopped else "no time was left"
                receipts.append(_skipped(script, why, keeper))
                continue
            began = time.monotonic()
            finished = await self._run(
                script, variables, run, min(script.timeout_seconds, left_seconds), pinned
            )
            left_seconds -= time.monotonic() - began
            reading = _read(script, finished)
            receipts.append(_receipt(script, finished, reading, keeper))
            _report(script, finished, reading)
            if reading.error is not None:
                stopped = script.error_handling == "stop"
            elif reading.override is not None:
                candidates.append(OverrideCandidate(script.id, script.priority, reading.override))
        choice = await self._chosen(requested, candidates, pinned)
        if candidates and any(script.log == "verbose" for script in listed):
            _log.info("%s", log_line(choice))
        return Gathered(tuple(receipts), judged(choice), _winner(choice))

    async def _chosen(
        self, requested: str, candidates: Sequence[OverrideCandidate], pinned: PinnedConfiguration
    ) -> OverrideChoice:
        """Looks for the credentials of one proposed agent after the other, the best first."""
        configured = pinned.configuration.agent_ids()
        without: set[str] = set()
        while True:
            choice = choose_override(
                requested, candidates, configured, lambda id: id not in without
            )
            best = choice.winner.agent_id if choice.winner else None
            if best is None or self._credentials is None:
                return choice
            if not (await self._credentials.found(pinned, best)).missing:
                return choice
            without.add(best)

    async def _run(
        self,
        script: ContextScript,
        variables: SpawnVariables,
        run: Run,
        timeout_seconds: float,
        pinned: PinnedConfiguration,
    ) -> ScriptFinished:
        if not self._scripts.serves(script):
            return ScriptFinished(
                output="",
                output_bytes=0,
                exit_code=None,
                error="scripts at a URL are not served yet; use a local file",
                duration_ms=0,
            )
        request = ScriptRun(
            script=script,
            variables=variables,
            facts=_facts(run),
            timeout_seconds=timeout_seconds,
            output_bytes_max=pinned.configuration.spawnlog.script_output_bytes_max,
        )
        try:
            return await self._scripts.run(request)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            # The runner should not raise; a spawn must not depend on it.
            _log.exception("context script %s", script.id)
            return ScriptFinished(
                output="", output_bytes=0, exit_code=None, error=str(error), duration_ms=0
            )


def _facts(run: Run) -> Mapping[str, str]:
    return {
        "SPAWNLOG_RUN_ID": str(run.run_id),
        "SPAWNLOG_REQUESTER_SESSION_KEY": run.requester.session_key,
        "SPAWNLOG_DEPTH": str(run.depth),
        "SPAWNLOG_ATTEMPT": str(run.attempt),
    }


def _read(script: ContextScript, finished: ScriptFinished) -> ScriptReading:
    if finished.error is not None:
        return ScriptReading(error=finished.error)
    return read_script_output(
        script_id=script.id,
        text=finished.output,
        return_key=script.return_key,
        error_key=script.error_key,
        agent_id_override_key=script.agent_id_override_key,
    )


def _receipt(
    script: ContextScript, finished: ScriptFinished, reading: ScriptReading, keeper: Keeper
) -> ScriptReceipt:
    outcome: Literal["injected", "empty", "failed"] = "empty"
    if reading.error is not None:
        outcome = "failed"
    elif reading.content:
        outcome = "injected"
    return ScriptReceipt(
        id=script.id,
        uri=without_url_secrets(script.uri),
        format=script.format,
        priority=script.priority,
        position=script.position,
        outcome=outcome,
        duration_ms=finished.duration_ms,
        exit_code=finished.exit_code,
        output_bytes=finished.output_bytes,
        output=keeper.keep("scriptOutput", finished.output) if finished.output else None,
        injected=keeper.keep("injected", reading.content) if reading.content else None,
        error=keeper.keep("scriptError", reading.error) if reading.error else None,
        candidate=_identifier(reading.override),
    )


def _skipped(script: ContextScript, why: str, keeper: Keeper) -> ScriptReceipt:
    return ScriptReceipt(
        id=script.id,
        uri=without_url_secrets(script.uri),
        format=script.format,
        priority=script.priority,
        position=script.position,
        outcome="skipped",
        duration_ms=0,
        error=keeper.keep("scriptError", why),
    )


def _identifier(proposed: str | None) -> str | None:
    """A proposal that could be an agent id; other texts stay in the script's output."""
    if proposed is None or len(proposed) > 64 or not proposed.isascii():
        return None
    return proposed if proposed.replace("-", "").replace("_", "").isalnum() else None


def judged(choice: OverrideChoice) -> tuple[Candidate, ...]:
    """The candidates with their verdicts, as they are recorded."""
    return tuple(
        Candidate(
            script_id=one.script_id,
            priority=one.priority,
            agent_id=one.agent_id,
            verdict=one.reason if one.verdict != "winner" else "winner",
        )
        for one in choice.candidates
    )


def _winner(choice: OverrideChoice) -> str | None:
    return choice.agent_id if choice.is_override else None


def _report(script: ContextScript, finished: ScriptFinished, reading: ScriptReading) -> None:
    if reading.error is not None:
        # The error holds what the script printed, which is for the receipt, not for the log.
        _log.warning("[context-script] %s failed (exit %s)", script.id, finished.exit_code)
    elif script.log is not False:
        chars = len(reading.content or "")
        uri = without_url_secrets(script.uri)
        _log.info("[context-script] %s (%s) → %d chars", script.id, uri, chars)
    if script.log == "verbose":
        _log.info("[context-script] %s printed %d bytes", script.id, finished.output_bytes)


def injected(receipts: Sequence[ScriptReceipt]) -> tuple[ScriptReceipt, ...]:
    """The receipts whose content goes into the message, in the order they ran."""
    return tuple(one for one in receipts if one.injected is not None)
