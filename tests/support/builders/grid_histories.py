"""A history for each row of the grid of a run, and one per stage with everything possible."""

from domain.run.facts import HOOK_ORDER
from domain.run.lifecycle import RunStage
from tests.support.builders import continued_runs as continued
from tests.support.builders import effects
from tests.support.builders import run_histories as past
from tests.support.builders import waiting_runs as waiting

SILENTLY = past.announced(disposition="skipped", reason="its requester stopped it", text=None)
QUEUED_WITH_STEPS = (*past.a_run_with_steps(), past.created(), past.queued())
STARTED_WITH_HOOKS = (*effects.a_run_with_hooks(), past.claimed(), past.started())
ENDED_WITH_HOOKS = (*STARTED_WITH_HOOKS, past.ended())
HISTORIES: dict[str, past.History] = {
    "requested": past.a_requested_run(),
    "scripts-resolved": past.a_resolved_run(),
    "prepared": past.a_prepared_run(),
    "begun": past.a_run_at_a_step(),
    "begun-elsewhere": (*past.a_run_at_a_step(), past.resumed()),
    "taken": past.a_run_with_steps(),
    "overridden": past.an_overridden_run(),
    "prepared-overridden": (*past.an_overridden_run(), past.prepared(agent_id="steward")),
    "begun-overridden": (*past.an_overridden_run(), past.prepared(), past.step_begun()),
    "session-created": past.a_created_run(),
    "queued": past.a_queued_run(),
    "claimed": past.a_claimed_run(),
    "claimed-stopping": (*past.a_claimed_run(), past.stop_requested()),
    "started": past.a_started_run(),
    "started-stopping": (*past.a_started_run(), past.stop_requested()),
    "ended": past.an_ended_run(),
    "ended-pending": past.an_ended_run_with_pending_descendants(),
    "ended-settled": (*past.an_ended_run_with_pending_descendants(), past.settled()),
    "announced": past.an_announced_run(),
    "announced-silently": (*past.an_ended_run(), SILENTLY),
    "acknowledged": (*past.an_announced_run(), past.acknowledged()),
    "archived": past.an_archived_run(),
    "refused": past.a_refused_run(),
    "refused-told": (*past.a_resolved_run(), past.refused_and_told()),
    "refused-undoing": (*past.a_run_with_steps(), past.refused()),
    "refused-trying": (*past.a_run_with_steps(), past.refused(), past.undo_failed()),
    "refused-undone": (*past.a_run_with_steps(), past.refused(), past.step_undone()),
    "queued-with-steps": QUEUED_WITH_STEPS,
    "ended-with-steps": (*QUEUED_WITH_STEPS, past.ended()),
    "announced-undoing": (*QUEUED_WITH_STEPS, past.ended(), past.announced()),
    "archived-undoing": (*QUEUED_WITH_STEPS, past.ended(), past.announced(), past.archived()),
    "queued-hooked": effects.a_run_with_hooks(),
    "queued-trying": (*effects.a_run_with_hooks(), effects.hook_failed()),
    "queued-told": (*effects.a_run_with_hooks(), effects.hook_told()),
    "created-hooked": effects.a_run_with_hooks()[:-1],
    "started-hooked": STARTED_WITH_HOOKS,
    "ended-hooked": ENDED_WITH_HOOKS,
    "announced-hooked": (*ENDED_WITH_HOOKS, past.announced()),
    "archived-hooked": (*ENDED_WITH_HOOKS, past.announced(), past.archived()),
    "sent": continued.a_sent_run(),
    "planned": continued.a_planned_run(),
    "waiting": continued.a_waiting_run(),
    "running": continued.a_running_run(),
    "finished": continued.a_finished_run(),
    "continued": continued.a_continued_run(),
    "followed": (*continued.a_continued_run(), continued.scheduled("continuation_archived")),
    "created-closing": (*past.a_created_run(), continued.scheduled()),
    "queued-closing": (*past.a_queued_run(), continued.scheduled()),
    "started-closing": (*past.a_started_run(), continued.scheduled()),
    "ended-closing": (*past.an_ended_run(), continued.scheduled()),
    "announced-closing": (*past.an_announced_run(), continued.scheduled()),
    "archived-closing": (*past.an_announced_run(), continued.scheduled(), past.archived()),
    "awaiting": waiting.an_awaiting_run(),
}


"""Histories by the names of the rows."""


WITH_ALL = (*past.a_run_with_steps(), past.created(hooks=HOOK_ORDER))
ENDED_WITH_ALL = (*WITH_ALL, past.queued(), past.claimed(), past.started(), past.ended())
HAVING_ALL: dict[RunStage, past.History] = {
    "scripts-resolved": HISTORIES["begun"],
    "overridden": HISTORIES["begun-overridden"],
    "session-created": WITH_ALL,
    "queued": (*WITH_ALL, past.queued()),
    "started": ENDED_WITH_ALL[:-1],
    "ended": ENDED_WITH_ALL,
    "announced": (*ENDED_WITH_ALL, past.announced(webhooks=("gateway",))),
    "archived": (*ENDED_WITH_ALL, past.announced(webhooks=("gateway",)), past.archived()),
    "refused": (*past.a_run_with_steps(), past.refused_and_told(webhooks=("gateway",))),
}


"""Histories with everything that an event at their stage may concern."""
