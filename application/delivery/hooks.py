"""Calls hooks at the begin and end of runs."""

import logging
from typing import cast

from application.concurrency.bulkhead import BulkheadFullError
from application.delivery.effects import AttemptResult, Impossible
from application.log.unit_of_work import UnitOfWork
from application.ports.configurations import RevisionErasedError
from application.ports.hooks import HookClient, HookError
from application.steps.thread_binding import child_origin, requester_origin
from domain.configuration.problems import ConfigurationError
from domain.delivery.hook_payloads import HookCall, notification_call
from domain.run.facts import Effect, EffectKind, HookName
from domain.run.state import Run
from domain.values.text import utf8_prefix

ERROR_BYTES_MAX = 4_096
_log = logging.getLogger("spawnlog.hooks")


class HookPerformer:
    """Caller of the hooks in the run's configuration. Implements `EffectPerformer`."""

    kind: EffectKind = "hook"

    def __init__(self, work: UnitOfWork, hooks: HookClient) -> None:
        self._work = work
        self._hooks = hooks

    def room(self, effect: Effect) -> str:
        return effect.name

    async def perform(self, run: Run, effect: Effect) -> AttemptResult | Impossible:
        try:
            pinned = await self._work.configurations.at(run.config_revision)
        except (RevisionErasedError, ConfigurationError) as unread:
            _log.warning("run %s: hook %s is not called: %s", run.run_id, effect.name, unread)
            return Impossible("not_configured")
        call = await self._call(run, cast("HookName", effect.name))
        try:
            answer = await self._hooks.ask(pinned, call)
        except HookError as threw:
            if threw.is_busy:
                # Nothing was sent, so this is not an attempt.
                raise BulkheadFullError(str(threw)) from None
            limits = pinned.configuration.spawnlog.hooks
            return AttemptResult(
                error=str(threw),
                status_code=threw.status_code,
                attempts_max=limits.attempts_max,
                retry_seconds_max=limits.retry_seconds_max,
            )
        return AttemptResult(status_code=answer.status_code)

    async def _call(self, run: Run, name: HookName) -> HookCall:
        contents = self._work.contents
        if name == "subagentSpawned":
            origin = await requester_origin(run, contents)
            return notification_call(run, name, origin=origin, error=None)
        ref = run.stop_reason if run.outcome == "stopped" else None
        ref = ref or run.error
        error = await contents.text(ref) if ref is not None else None
        cut = utf8_prefix(error, ERROR_BYTES_MAX) if error else None
        return notification_call(run, name, origin=await child_origin(run, contents), error=cut)
