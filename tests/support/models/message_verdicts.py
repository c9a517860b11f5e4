"""Messages to the sessions of a log in memory, decided from few streams."""

from uuid import UUID

from application.projections.fold import Fold
from domain.plan.child import RefusedChild
from domain.run.events import ContinuationPlanned
from domain.run.state import Run
from domain.spawn.continuation import ContinuationDecision, Message, continue_session
from domain.spawn.request import StoreText
from tests.support.builders.continued_runs import planned as planned_again


def judged_message(
    fold: Fold,
    run_id: UUID,
    last: Run,
    keep: StoreText,
    *,
    max_children: int,
    planned: ContinuationPlanned | RefusedChild | None = None,
    has_waited: bool = False,
) -> ContinuationDecision:
    """Return the decision about a message that was made from `last`.

    It uses only the streams that are read with it: that run, its session, the session that spawned
    it, and that session's own run.
    """
    assert last.child_session_key is not None
    keys = {last.child_session_key, last.requester.session_key}
    sessions = {key: session for key, session in fold.sessions.items() if key in keys}
    around = {last.run_id, sessions[last.requester.session_key].run_id}
    message = Message(
        run_id=run_id,
        text=keep("message", "and then?"),
        by="admin",
        config_revision=1,
        max_children=max_children,
        has_waited=has_waited,
    )
    return continue_session(
        sessions,
        {run: state for run, state in fold.runs.items() if run in around},
        message,
        last,
        planned or planned_again(),
        keep,
    )
