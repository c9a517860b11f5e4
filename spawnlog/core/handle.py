"""A run that a program holds on to, and a session whose family it spawns: what both kinds of client
make of them, as errands."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self

from spawnlog.core.errors import (
    InvalidSetting,
    RefusalProblem,
    ServerUnreachable,
    SpawnlogError,
)
from spawnlog.core.request import Request
from spawnlog.core.retries import Errand, RetryLimits, exchange
from spawnlog.core.wait import WaitUntil, goes_on_in, result_of, wait_for_message, wait_for_run
from spawnlog.operations import control, runs
from spawnlog.operations.bodies import RequesterObject

if TYPE_CHECKING:
    from application.queries.views.run import RunMetadataView, RunView
    from infrastructure.inbound.http.schemas.answers import (
        FinishedAnswer,
        SessionStoppedAnswer,
        StoppedAnswer,
    )

SPAWNED_MAX = 10_000


class _KnowsLimits(Protocol):
    @property
    def retries(self) -> RetryLimits: ...


class RunHandle:
    """A run that was asked for. `view` is how it read last, null until it was read.

    Nothing ends a run but a stop, its time limit and its own end: letting go of a handle, or ending
    a wait for it, changes nothing.
    """

    def __init__(
        self,
        client: Any,
        run_id: str,
        child_session_key: str | None = None,
        *,
        is_queued: bool = False,
        warnings: Sequence[str] = (),
    ) -> None:
        self.client = client
        self.run_id = run_id
        self.child_session_key = child_session_key
        self.view: RunView | RunMetadataView | None = None
        self.warnings = tuple(warnings)
        self._is_queued = is_queued

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.run_id!r})"

    @property
    def _limits(self) -> RetryLimits:
        client: _KnowsLimits = self.client
        return client.retries

    def _refresh(self) -> Errand[RunView | RunMetadataView]:
        """How the run reads now."""
        self.view = (yield from exchange(runs.get_run(self.run_id), self._limits)).value
        self.child_session_key = self.view.child_session_key
        return self.view

    def _wait(
        self, until: WaitUntil = "announced", *, seconds: float | None = None
    ) -> Errand[RunView | RunMetadataView]:
        """The run once it is `started`, `ended`, `announced` (its result is in its requester's
        inbox) or `archived`, or was refused. Without `seconds` it has no end but that. WaitTimeout
        when it takes longer; the run goes on."""
        began = time.monotonic()
        if self._is_queued and self.child_session_key is not None:
            yield from wait_for_message(self.run_id, self.child_session_key, seconds)
            self._is_queued = False
        left = None if seconds is None else max(seconds - (time.monotonic() - began), 0.001)
        self.view = yield from wait_for_run(self.run_id, until, left)
        self.child_session_key = self.view.child_session_key
        return self.view

    def _result(self, *, seconds: float | None = None) -> Errand[str | None]:
        """The text that the run came to, waited for. Where the run yielded or was steered it is
        that of the run in its place, which this handle stands for from then on. None when there is
        none, or when the token has no scope `content`. UnsuccessfulRun for any end but success."""
        began = time.monotonic()
        while True:
            left = None if seconds is None else max(seconds - (time.monotonic() - began), 0.001)
            run = yield from self._wait("announced", seconds=left)
            following = goes_on_in(run)
            if following is None:
                return result_of(run)
            self.run_id = following

    def _stop(self, reason: str | None = None) -> Errand[StoppedAnswer]:
        """Stop the run and all below it. One that executes is over when its processes are gone:
        wait for `ended`."""
        request = control.stop_run(self.run_id, reason=reason)
        return (yield from exchange(request, self._limits)).value

    def _send(self, message: str) -> Errand[Self]:
        """Go on with the session of this run: the run that the message becomes. While the one
        before it is at work it waits for that."""
        request = control.send_message(self.run_id, message)
        sent = (yield from exchange(request, self._limits)).value
        return type(self)(
            self.client,
            str(sent.run_id),
            sent.child_session_key,
            is_queued=sent.status == "queued",
            warnings=getattr(sent, "warnings", ()),
        )

    def _steer(self, message: str) -> Errand[Self | FinishedAnswer]:
        """End the run at work and go on with the message: the run in its place. When it was over
        already, nothing happened, and the answer says so."""
        request = control.send_message(self.run_id, message, mode="steer")
        sent: Any = (yield from exchange(request, self._limits)).value
        if sent.status == "done":
            return sent  # type: ignore[no-any-return]
        return type(self)(self.client, str(sent.run_id), sent.child_session_key, is_queued=True)


class FamilyHandle:
    """A session and the runs that are spawned for it, in `runs`.

    Leaving its `with` leaves the runs as they are: they are the server's, go on, and are announced
    in the session's inbox. With `stop_on_error` those of this `with` that are not over are stopped
    when it is left by an exception.
    """

    def __init__(
        self, client: Any, session: str | RequesterObject, *, stop_on_error: bool = False
    ) -> None:
        self.client = client
        self.requester: RequesterObject = (
            {"sessionKey": session} if isinstance(session, str) else session
        )
        self.stop_on_error = stop_on_error
        self._runs: list[Any] = []
        self._unanswered: dict[str | None, Request[Any]] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.key!r})"

    @property
    def key(self) -> str:
        """The session's key, as it was given."""
        return self.requester["sessionKey"]

    @property
    def _limits(self) -> RetryLimits:
        client: _KnowsLimits = self.client
        return client.retries

    def _spawned(self, kind: type[Any], members: Mapping[str, Any]) -> Errand[list[Any]]:
        if len(self._runs) + len(self._unanswered) >= SPAWNED_MAX:
            raise InvalidSetting(f"a family has {SPAWNED_MAX} runs at most: open another one")
        request = runs.spawn(requester=self.requester, **members)
        key = request.idempotency_key
        if self.stop_on_error:
            self._unanswered[key] = request
        try:
            accepted = (yield from exchange(request, self._limits)).value
        except RefusalProblem:
            self._unanswered.pop(key, None)
            raise
        self._unanswered.pop(key, None)
        made = [
            kind(self.client, str(one.run_id), one.child_session_key, warnings=one.warnings)
            for one in accepted.runs
        ]
        self._runs += made
        return made

    def _stop(self, reason: str | None = None) -> Errand[SessionStoppedAnswer]:
        """Stop the session: its own run, if it has one, and all below it."""
        request = control.stop_session(self.key, reason=reason)
        return (yield from exchange(request, self._limits)).value

    def _stop_runs(self, error: BaseException) -> Errand[None]:
        """Stop what was spawned here, since `error` leaves it. Why a run could not be stopped is a
        note on that error, which nothing takes the place of."""
        if not (yield from self._stop_each([run.run_id for run in self._runs], error)):
            return
        for request in self._unanswered.values():
            # The same key is the same run, if there is one; else this one ends where it begins.
            try:
                accepted = (yield from exchange(request, self._limits)).value
            except RefusalProblem:
                continue
            except SpawnlogError as failure:
                error.add_note(
                    "a run whose spawn was not answered could not be stopped, and may go on:"
                    f" {failure.message}"
                )
                if isinstance(failure, ServerUnreachable):
                    return
                continue
            if not (yield from self._stop_each([str(one.run_id) for one in accepted.runs], error)):
                return

    def _stop_each(self, run_ids: Sequence[str], error: BaseException) -> Errand[bool]:
        """Stop these; false when nobody answers."""
        # By the kind alone: its text may hold what is nobody's business.
        reason = f"the program that spawned it ended with {type(error).__name__}"
        for number, run_id in enumerate(run_ids, 1):
            try:
                yield from exchange(control.stop_run(run_id, reason=reason), self._limits)
            except ServerUnreachable as failure:
                # Nobody would hear of the others either, and each would take as long.
                left = len(run_ids) - number
                others = f" and {left} more" if left else ""
                error.add_note(f"run {run_id}{others} could not be stopped: {failure.message}")
                return False
            except SpawnlogError as failure:
                error.add_note(f"run {run_id} could not be stopped: {failure.message}")
        return True
