"""Performs the effects of runs from the record, until each is done or parked."""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, NamedTuple, Protocol
from uuid import UUID

from application.concurrency.bulkhead import Bulkhead
from application.log.answers import (
    RedrivenAnswer,
    RedrivenItem,
    RedrivenManyAnswer,
    RedriveRefusal,
)
from application.log.envelope import SYSTEM, Actor, Provenance
from application.log.event_log import (
    Content,
    Decision,
    DecisionContext,
    Reservation,
    StoredAnswer,
)
from application.log.texts import ContentsErased, TextStore
from application.log.unit_of_work import UnitOfWork, provenance_of
from application.ports.configurations import PinnedConfiguration
from application.ports.fault_injection import FaultPoint
from domain.run.commands import (
    RETRY_SECONDS_MAX,
    ConfirmEffect,
    NoteEffectFailure,
    ParkEffect,
    RedriveEffects,
    RunCommand,
)
from domain.run.effects import EFFECT_RULES, NothingParked, decide_effect, redrive_effects
from domain.run.events import EffectRedriven
from domain.run.facts import Effect, EffectKind, UndoOutcome
from domain.run.state import Run
from domain.values.record import run_stream
from domain.values.refusals import ConfigurationMoved, NotYet

_PARKABLE: tuple[EffectKind, ...] = ("webhook", "hook")
"""Kinds of effects that can be parked. An undo is attempted forever."""
_log = logging.getLogger("spawnlog.effects")


class AttemptResult(NamedTuple):
    """The result of an attempt; it succeeded if `error` is None.

    Attributes:
        is_final: Whether another attempt would fail too.
        pause_seconds: How long the receiver asks to wait.
    """

    error: str | None = None
    status_code: int | None = None
    outcome: UndoOutcome | None = None
    is_final: bool = False
    pause_seconds: int = 0
    attempts_max: int = 1
    retry_seconds_max: int = RETRY_SECONDS_MAX


class Impossible(NamedTuple):
    """The effect can never be performed, so no attempt was made.

    If `judged_under` is given, that holds only while it is the configuration in force.
    """

    reason: Literal["not_configured", "erased"]
    judged_under: PinnedConfiguration | None = None


class EffectPerformer(Protocol):
    """Performer of the effects of one kind."""

    kind: EffectKind

    def room(self, effect: Effect, /) -> str:
        """Return the compartment in which the effect is attempted."""
        ...

    async def perform(self, run: Run, effect: Effect, /) -> AttemptResult | Impossible:
        """Attempt the effect once.

        Raises:
            BulkheadFullError: If the compartment has no room.
        """
        ...


class EffectWorker:
    """Worker that performs due effects, without holding the run.

    Effects may be repeated: receivers recognize a repeat by its key, and undos are idempotent. Each
    attempt runs in a compartment of the bulkhead.
    """

    def __init__(
        self,
        work: UnitOfWork,
        performers: Iterable[EffectPerformer],
        interruption: FaultPoint,
        rooms: Bulkhead,
    ) -> None:
        self._work = work
        self._performers = {performer.kind: performer for performer in performers}
        self._interruption = interruption
        self._rooms = rooms

    async def perform(self, run_id: UUID) -> None:
        """Attempt the due effects of a run: kinds with an order sequentially, all others
        concurrently.

        Failures are recorded, and the effect is retried later or parked.

        Raises:
            BulkheadFullError: If too many calls wait in a compartment.
        """
        run = await self._work.run(run_id)
        # The claim says that the first effect is due, even if the log's clock is behind.
        now = max(self._work.log.now(), run.effects_at or datetime.min.replace(tzinfo=UTC))
        sequences: dict[tuple[str, ...], list[Effect]] = {}
        for effect in run.effects:
            if effect.due_at is not None and effect.due_at <= now:
                sequences.setdefault(_order_key(effect), []).append(effect)
        results = await asyncio.gather(
            *(self._perform_in_order(run, effects) for effects in sequences.values()),
            return_exceptions=True,
        )
        failures = [failure for failure in results if failure is not None]
        for failure in failures[1:]:
            _log.warning("run %s: an effect: %r", run_id, failure)
        if failures:
            raise failures[0]

    async def redrive(
        self,
        run: Run,
        kind: EffectKind,
        name: str | None,
        reason: str,
        actor: Actor,
        reservation: Reservation | None = None,
    ) -> StoredAnswer:
        """Retry the parked effects of a run: all of a kind, or only the effect `name`.

        Raises:
            NothingParked: If none of them is parked.
            ContentsErased: If the texts of the run were erased, so that no reason can be recorded.
        """
        text_store = await self._work.text_store(run)

        def decide(world: DecisionContext) -> Decision[StoredAnswer]:
            redrive = _Redrive(kind, name, actor.name, reason)
            changes, contents = redrive.decide(world.runs[run.run_id], text_store)
            names = {
                kind: [event.name for _, event in changes if event.kind == kind]
                for kind in _PARKABLE
            }
            answer = StoredAnswer.of(
                "redriven",
                RedrivenAnswer(run_id=run.run_id, webhooks=names["webhook"], hooks=names["hook"]),
            )
            return Decision(answer, changes, contents, answer=answer)

        appended = await self._work.submit(
            (run_stream(run.run_id),), decide, provenance_of(run, actor), reservation=reservation
        )
        return appended.result

    async def redrive_many(
        self,
        runs: Sequence[Run],
        webhook: str | None,
        reason: str,
        actor: Actor,
        *,
        more_after: int | None = None,
        until: int,
        reservation: Reservation | None = None,
    ) -> StoredAnswer:
        """Retry the parked deliveries of several runs in one append: all of them, or those to
        `webhook`.

        A run whose texts were erased stays parked, and the answer names it. A run that another
        request has redriven meanwhile is left out.

        Args:
            more_after: Position after which more runs may be parked, for the answer.
            until: Position up to which the runs were looked for, for the answer.

        Raises:
            NothingParked: If none of them is parked.
        """
        text_stores: dict[UUID, TextStore] = {}
        refused: list[RedriveRefusal] = []
        for run in runs:
            try:
                text_stores[run.run_id] = await self._work.text_store(run)
            except ContentsErased as why:
                refused.append(RedriveRefusal(run_id=run.run_id, code="erased", detail=str(why)))

        def decide(world: DecisionContext) -> Decision[StoredAnswer]:
            redrive = _Redrive("webhook", webhook, actor.name, reason)
            redriven: list[RedrivenItem] = []
            changes: list[tuple[str, EffectRedriven]] = []
            contents: list[Content] = []
            for run_id, text_store in text_stores.items():
                try:
                    changed, texts = redrive.decide(world.runs[run_id], text_store)
                except NothingParked:
                    continue
                webhooks = [event.name for _, event in changed]
                redriven.append(RedrivenItem(run_id=run_id, webhooks=webhooks))
                changes += changed
                contents += texts
            if not redriven and not refused:
                where = f" to webhook {webhook}" if webhook is not None else ""
                raise NothingParked(f"no delivery{where} is parked")
            view = RedrivenManyAnswer(
                redriven=redriven, refused=refused, more_after=more_after, until=until
            )
            answer = StoredAnswer.of("redriven", view)
            return Decision(answer, changes, contents, answer=answer)

        appended = await self._work.submit(
            tuple(run_stream(run_id) for run_id in text_stores),
            decide,
            Provenance(actor),
            reservation=reservation,
            about=frozenset(text_stores),
        )
        return appended.result

    async def _perform_in_order(self, run: Run, effects: Sequence[Effect]) -> None:
        """Attempt each effect once, in order; stop at a failure."""
        try:
            for effect in effects:
                if _phase(run, effect) == "due":
                    run = await self._attempt(run, effect)
                    if _phase(run, effect) == "due":
                        return
        except NotYet as why:
            _log.info("run %s: %s; another server handles it", run.run_id, why)
        except ConfigurationMoved as moved:
            _log.info("run %s: %s: %s", run.run_id, effects[0].name, moved)

    async def _attempt(self, run: Run, effect: Effect) -> Run:
        performer = self._performers[effect.kind]
        point = f"{effect.kind}:{effect.name}"
        async with self._rooms.of(performer.room(effect)):
            self._interruption("before", point)
            result = await performer.perform(run, effect)
        self._interruption("after", point)
        if isinstance(result, Impossible):
            return await self._park(run, effect, result)
        if result.error is not None:
            return await self._note_failure(run, effect, result.error, result)
        done = ConfirmEffect(
            kind=effect.kind,
            name=effect.name,
            status_code=result.status_code,
            outcome=result.outcome,
        )
        return (await self._work.record(run, (done,))).runs[run.run_id]

    async def _note_failure(
        self, run: Run, effect: Effect, text: str, result: AttemptResult
    ) -> Run:
        text_store = await self._work.text_store_or_none(run)
        if text_store is None and EFFECT_RULES[effect.kind].gives_up:
            # No text about an erased session may be delivered.
            return await self._park(run, effect, Impossible("erased"))
        # The failure is recorded even without its text, or it would be retried at once forever.
        failed: RunCommand = NoteEffectFailure(
            kind=effect.kind,
            name=effect.name,
            attempt=effect.attempts + 1,
            error=text_store.store(f"{effect.kind}Error", text) if text_store else None,
            status_code=result.status_code,
            refused=result.is_final,
            attempts_max=result.attempts_max,
            retry_seconds_max=result.retry_seconds_max,
            pause_seconds=result.pause_seconds,
        )
        run = (await self._work.record(run, (failed,), text_store)).runs[run.run_id]
        given_up = "; this was the last attempt" if _phase(run, effect) == "parked" else ""
        _log.warning("run %s: %s %s: %s%s", run.run_id, effect.kind, effect.name, text, given_up)
        return run

    async def _park(self, run: Run, effect: Effect, why: Impossible) -> Run:
        """Park an effect. If the configuration has changed meanwhile, leave it due."""
        stream = run_stream(run.run_id)
        command = ParkEffect(kind=effect.kind, name=effect.name, reason=why.reason)

        def decide(world: DecisionContext) -> Decision[None]:
            if why.judged_under is not None:
                why.judged_under.require_current(world.config_version)
            events = decide_effect(world.runs[run.run_id], command)
            return Decision(None, [(stream, event) for event in events])

        appended = await self._work.submit((stream,), decide, provenance_of(run, SYSTEM))
        text = "run %s: %s %s is parked: %s"
        _log.warning(text, run.run_id, effect.kind, effect.name, why.reason)
        return appended.runs[run.run_id]


@dataclass(frozen=True, slots=True)
class _Redrive:
    """A redrive of parked effects, decided for one run at a time."""

    kind: EffectKind
    name: str | None
    by: str
    reason: str

    def decide(
        self, run: Run, text_store: TextStore
    ) -> tuple[list[tuple[str, EffectRedriven]], Sequence[Content]]:
        """Return the events of a run with their stream, and the text of the reason.

        Raises:
            NothingParked: If none of the run's effects matches.
        """
        texts = text_store.empty_copy()
        kept = texts.store("redriveReason", self.reason)
        command = RedriveEffects(kind=self.kind, name=self.name, by=self.by, reason=kept)
        stream = run_stream(run.run_id)
        return [(stream, event) for event in redrive_effects(run, command)], texts.contents


def _phase(run: Run, effect: Effect) -> str | None:
    now = run.effect(effect.kind, effect.name)
    return now.phase if now is not None else None


def _order_key(effect: Effect) -> tuple[str, ...]:
    """Return the key of the effects that are attempted one after another; others run at once."""
    if EFFECT_RULES[effect.kind].order:
        return (effect.kind,)
    return (effect.kind, effect.name)
