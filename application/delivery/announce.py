"""Announces the results of children to their requesters, and records acknowledgements."""

import logging
from collections.abc import Sequence
from uuid import UUID

from application.log.answers import AcknowledgedAnswer
from application.log.envelope import Actor
from application.log.event_log import (
    Decision,
    DecisionContext,
    Reservation,
    StoredAnswer,
    Submission,
)
from application.log.texts import ContentsErased, TextStore
from application.log.unit_of_work import RunCommands, UnitOfWork, decide_commands
from application.ports.configurations import PinnedConfiguration, RevisionErasedError
from application.ports.hooks import HookClient, HookError
from application.ports.transcripts import Transcripts
from application.steps.thread_binding import requester_origin, webhooks_of
from domain.configuration.problems import ConfigurationError
from domain.context.thread_binding import (
    INTERNAL_CHANNEL,
    delivery_origin,
    merge_origins,
    origin_text,
)
from domain.delivery.announcement import (
    ChildFinding,
    RunStats,
    announce,
    display_name,
    status_of,
    stop_note,
)
from domain.delivery.cost import total_cost
from domain.delivery.hook_payloads import delivery_target_call
from domain.delivery.output_notes import NOTES_MAX, OutputNote, announced_notes, read_notes
from domain.run.commands import AcknowledgeAnnouncement, AnnounceRun
from domain.run.facts import Disposition, RunOutcome
from domain.run.state import Run
from domain.values.refusals import NotYet, WrongStage

# Delivery targets beyond the requester's inbox.


_log = logging.getLogger("spawnlog.announcing")


SKIPPED_BY_CHILD = "the child asked not to be announced"


async def delivery_target_hook(work: UnitOfWork, run: Run) -> PinnedConfiguration | None:
    """Return the configuration with the delivery target hook; None if it is not to be asked."""
    if run.requester.depth > 0 or run.delivery_origin is not None:
        return None
    try:
        pinned = await work.configurations.at(run.config_revision)
    except (RevisionErasedError, ConfigurationError) as unread:
        _log.warning(
            "run %s: its configuration cannot be read, so its result goes only to the inbox: %s",
            run.run_id,
            unread,
        )
        return None
    if pinned.configuration.spawnlog.hooks.subagent_delivery_target is None:
        return None
    return pinned


async def ask_delivery_target(work: UnitOfWork, hooks: HookClient, run: Run) -> str | None:
    """Ask the hook `subagentDeliveryTarget` where the result goes, and return its answer as stored.

    Return None if there is no hook or no usable answer; the result then goes to the child's or the
    requester's addresses. The hook is asked once, for a child without a thread whose requester is a
    root session.
    """
    pinned = await delivery_target_hook(work, run)
    if pinned is None:
        return None
    requester = await requester_origin(run, work.contents)
    try:
        answer = await hooks.ask(pinned, delivery_target_call(run, requester))
    except HookError as threw:
        _log.warning("run %s: hook subagentDeliveryTarget: %s", run.run_id, threw)
        return None
    origin = delivery_origin((answer.body or {}).get("origin"))
    if not origin or origin.get("channel") == INTERNAL_CHANNEL:
        return None
    return origin_text(merge_origins(origin, requester))


class Announcer:
    """Service that announces each ended run once."""

    def __init__(self, work: UnitOfWork, hooks: HookClient, transcripts: Transcripts) -> None:
        self._work = work
        self._hooks = hooks
        self._transcripts = transcripts

    async def follow_up(
        self,
        run: Run,
        text_store: TextStore,
        *,
        result: str | None,
        error: str | None,
        output_notes: Sequence[OutputNote] = (),
    ) -> Submission[None] | None:
        """Return the announcement of a run that is about to end, from facts known now.

        Return None if a hook must be asked first, or if webhooks are configured.
        """
        if await delivery_target_hook(self._work, run) is not None:
            return None
        if self._work.configurations.current().configuration.spawnlog.announce.webhooks:
            return None

        def decide(world: DecisionContext) -> Decision[None]:
            now = world.runs[run.run_id]
            own = world.sessions.get(now.child_session_key or "")
            is_stopped = now.stop_requested_by is not None or now.outcome == "stopped"
            is_parent = own is not None and own.admitted
            if now.stage != "ended" or now.is_paused or is_stopped or is_parent:
                raise NotYet("more runs must be read before it can be announced")
            disposition, reason = disposition_of(now)
            text = None
            if disposition == "inbox":
                notes = [error] if error else []
                notes += announced_notes(
                    output_notes, has_result=bool(result), has_error=bool(error)
                )
                text = announcement_text(now, result, notes, findings=())
                if text is None:
                    disposition, reason = "skipped", SKIPPED_BY_CHILD
            texts = text_store.empty_copy()
            command = AnnounceRun(
                disposition=disposition,
                reason=reason,
                status=status_of(announced_outcome(now)),
                text=texts.store("announcement", text) if text else None,
                pending_descendants=0,
            )
            return decide_commands(world, (RunCommands(now, (command,), texts),))

        return self._work.follow_up(run, decide)

    async def announce(self, run_id: UUID) -> None:
        """Announce a run that has ended and waits for nothing. Idempotent."""
        run = await self._work.run(run_id)
        if run.stage != "ended" or run.is_paused or run.pending_descendants:
            return
        try:
            await self._announce(run)
        except (WrongStage, NotYet) as why:
            _log.info("run %s is not announced now: %s", run_id, why)
        except ContentsErased as why:
            _log.warning("run %s is announced without its texts: %s", run_id, why)
            await self._work.record(run, (_announce_without_text(run),))

    async def _announce(self, run: Run) -> None:
        text_store = await self._work.text_store(run)
        disposition, reason = disposition_of(run)
        text = None
        if disposition == "inbox":
            text = await self._text(run)
            if text is None:
                disposition, reason = "skipped", SKIPPED_BY_CHILD
        origin = await ask_delivery_target(self._work, self._hooks, run) if text else None
        command = AnnounceRun(
            disposition=disposition,
            reason=reason,
            status=status_of(announced_outcome(run)),
            text=text_store.store("announcement", text) if text else None,
            pending_descendants=0,
            origin=text_store.store("origin", origin) if origin is not None else None,
            webhooks=await webhooks_of(self._work, run, origin) if text else (),
        )
        await self._work.record(run, (command,), text_store)

    async def _text(self, run: Run) -> str | None:
        kept = (run.result, run.error, run.stop_reason, run.continuation_error)
        refs = [ref for ref in kept if ref is not None]
        texts = await self._work.contents.texts(refs)
        notes: list[str] = []
        if run.outcome == "stopped":
            # A run stopped before it was held ended at once, with the reason in its end.
            why = run.stop_reason or (run.error if run.end_reason == "stopped" else None)
            reason = texts.get(why.id) if why else None
            notes.append(stop_note(run.stop_requested_by or "somebody", reason))
        elif run.error is not None:
            notes.append(texts.get(run.error.id, ""))
        if run.continuation_failed:
            error = run.continuation_error
            text = texts.get(error.id) if error is not None else None
            notes.append(f"its session could not continue: {text or 'its texts were erased'}")
        notes += await self._output_notes(run)
        result = texts.get(run.result.id) if run.result else None
        return announcement_text(run, result, notes, await self._findings(run))

    async def _output_notes(self, run: Run) -> list[str]:
        """Return the notes at the end of the transcript, as they are announced."""
        if run.transcript is None:
            return []
        last = await self._transcripts.read_last(
            run.run_id, until=run.transcript.count, limit=NOTES_MAX
        )
        return announced_notes(
            read_notes([entry.body for entry in last]),
            has_result=run.result is not None,
            has_error=run.error is not None,
        )

    async def _findings(self, run: Run) -> tuple[ChildFinding, ...]:
        """Return the results of an orchestrator's own children.

        Children of earlier runs of the session were announced with those runs.
        """
        if run.child_session_key is None or run.role != "orchestrator":
            return ()
        registry = self._work.registry
        own = await registry.session(run.child_session_key)
        # Reports to earlier runs that no run of the session has received.
        unreported = own.reports if own is not None else ()
        below = await registry.runs_below(run.child_session_key)
        children = [
            child
            for child in below
            if child.requester.session_key == run.child_session_key
            and not child.is_replaced
            and (child.requester.run_id in (None, run.run_id) or child.run_id in unreported)
        ]
        return await findings_of(self._work, children)

    async def acknowledge(
        self,
        run: Run,
        actor: Actor,
        reservation: Reservation | None = None,
        *,
        position: int | None = None,
    ) -> StoredAnswer:
        """Record that the requester has received the announcement. Idempotent.

        If `position` is given and the announcement has moved on since, it is not acknowledged.

        Raises:
            CannotDeliver: If the run has no announcement in an inbox.
        """
        taken = AcknowledgedAnswer(id=run.run_id, run_id=run.run_id)
        answer = StoredAnswer.of("acknowledged", taken)
        command = AcknowledgeAnnouncement(by=actor.name, position=position)
        await self._work.record(
            run, (command,), actor=actor, reservation=reservation, answer=answer
        )
        return answer


async def findings_of(work: UnitOfWork, children: Sequence[Run]) -> tuple[ChildFinding, ...]:
    """Return the results of those of the runs that are over, in their order."""
    errors = {
        child.run_id: child.refusal.text if child.refusal else child.error for child in children
    }
    refs = [
        ref for child in children for ref in (child.result, errors[child.run_id]) if ref is not None
    ]
    texts = await work.contents.texts(refs)
    tasks = await work.contents.previews(child.task for child in children if not child.label)
    return tuple(
        ChildFinding(
            name=display_name(child.label, tasks.get(child.task.id), _key(child)),
            outcome=child.outcome or "error",
            result=texts.get(child.result.id) if child.result else None,
            error=texts.get(error.id) if (error := errors[child.run_id]) is not None else None,
        )
        for child in children
        if child.outcome is not None or child.refusal is not None
    )


def _key(run: Run) -> str:
    return run.child_session_key or str(run.run_id)


def announcement_text(
    run: Run, result: str | None, notes: Sequence[str], findings: tuple[ChildFinding, ...]
) -> str | None:
    """Return the text of a run's announcement; None if the child asked for silence."""
    announcement = announce(
        outcome=announced_outcome(run),
        result=result,
        stats=stats_of(run),
        notes=[note for note in (*notes, *run.warnings) if note],
        findings=findings,
    )
    return announcement.text if announcement else None


def announced_outcome(run: Run) -> RunOutcome:
    """Return the outcome to announce. A run whose session could not be continued has failed."""
    if run.continuation_failed and run.outcome == "success":
        return "error"
    return run.outcome or "unknown"


def disposition_of(run: Run) -> tuple[Disposition, str | None]:
    """Return whether the run is announced to its requester, and the reason if not."""
    if run.outcome == "stopped" and run.stop_by_requester:
        return "skipped", "its requester stopped it"
    # A run that never started delivered nothing itself.
    if run.direct_delivery and run.started_at is not None:
        return "not_required", "its runtime brings the result to the thread"
    if not run.options.expects_completion_message:
        return "not_required", "no completion message was expected"
    return "inbox", None


def _announce_without_text(run: Run) -> AnnounceRun:
    return AnnounceRun(
        disposition="skipped",
        reason="its texts were erased",
        status=status_of(announced_outcome(run)),
        text=None,
        pending_descendants=0,
    )


def stats_of(run: Run) -> RunStats:
    """Return the numbers of the stats line."""
    usage = run.usage
    return RunStats(
        session_key=run.child_session_key or "",
        runtime_ms=run.runtime_ms,
        input_tokens=usage.input_tokens if usage else None,
        output_tokens=usage.output_tokens if usage else None,
        total_tokens=usage.total_tokens if usage else None,
        estimated_cost_usd=estimated_cost_usd(run),
        session_id=str(run.session_id),
        transcript_path=run.transcript_path,
    )


def estimated_cost_usd(run: Run) -> float | None:
    """Return the cost of the tokens as recorded at the end; None without tokens or prices."""
    return total_cost(run.usage) if run.usage is not None else None
