"""What is answered to commands and about the server. The answers to commands are kept as JSON for
repeated requests; these are their schemas."""

from typing import Any, Literal
from uuid import UUID

from application.queries.views.run import AttachedFileView
from application.queries.views.view import View
from domain.run.facts import RunOutcome, SpawnMode


class AttachmentsReceipt(View):
    """What was attached, and where it is below the child's workspace."""

    count: int
    total_bytes: int
    files: list[AttachedFileView]
    rel_dir: str


class AcceptedRun(View):
    """One child of an accepted spawn. `modelApplied` is whether the model that was named first is
    the one that runs; null when none was named."""

    run_id: UUID
    child_session_key: str
    session_id: UUID
    label: str | None
    mode: SpawnMode
    note: str | None
    model_applied: bool | None
    attachments: AttachmentsReceipt | None
    warnings: list[str]


class _AcceptedRuns(View):
    status: Literal["accepted"]
    runs: list[AcceptedRun]


class AcceptedSpawn(AcceptedRun, _AcceptedRuns):
    """An accepted spawn: its run in `runs`, and the members of that run beside it."""


class AcceptedBatch(View):
    """An accepted list of tasks: a run for each."""

    status: Literal["accepted"]
    batch_id: UUID
    runs: list[AcceptedRun]


class AcceptedBatchOfOne(AcceptedRun, AcceptedBatch):
    """An accepted list with one task: the members of its run stand beside it."""


class StoppedAnswer(View):
    """A run that is stopped; `wasOver` when there was nothing to stop."""

    run_id: UUID
    was_over: bool


class SessionStoppedAnswer(View):
    """A session that is stopped, with its newest run; `wasOver` when there was nothing to stop,
    `closed` when it takes no more messages."""

    session_key: str
    session_id: UUID
    run_id: UUID | None
    was_over: bool
    closed: bool


class ContinuedAnswer(View):
    """The new run of a session that goes on."""

    status: Literal["accepted"]
    run_id: UUID
    continues: UUID
    child_session_key: str
    session_id: UUID
    model_applied: bool | None
    warnings: list[str]


class QueuedAnswer(View):
    """A message that waits for the run at work, at this place from 1 on; `runId` is that of the run
    which will go on with it, and is known from then on."""

    status: Literal["queued"]
    run_id: UUID
    continues: UUID
    child_session_key: str
    session_id: UUID
    place: int


class SteeredAnswer(View):
    """A run that is ended for a message; `runId` is that of the run which goes on with it."""

    status: Literal["accepted"]
    run_id: UUID
    replaces: UUID
    child_session_key: str
    session_id: UUID
    mode: Literal["restart"]
    label: str | None
    text: str


class FinishedAnswer(View):
    """A run that was over when it was to be steered: nothing happened."""

    status: Literal["done"]
    run_id: UUID
    child_session_key: str
    session_id: UUID
    label: str | None
    text: str


class PreambleAnswer(View):
    """What stands in front of the prompts of a session's later runs from now on; `characters` 0:
    nothing. `changed` is whether it was something else before."""

    session_key: str
    session_id: UUID
    characters: int
    changed: bool


class YieldedAnswer(View):
    """A run that ends its turn and waits for its children."""

    status: Literal["yielded"]
    message: str
    run_id: UUID
    session_key: str


class TranscriptProvidedAnswer(View):
    """What is kept of a transcript that was sent."""

    session_key: str
    session_id: UUID
    entries: int
    bytes: int
    tokens: int | None
    position: int


class HealthAnswer(View):
    """The process answers; `version` is its release."""

    status: Literal["ok"]
    version: str


class ReadinessAnswer(View):
    """Where the log ends, and how far this server has read it."""

    status: Literal["ready"]
    head: int
    tail: int


class ClaimedAnswer(View):
    """The run is yours. `launch` is what a command would be given on its input (`stdin-json`),
    `token` the child's own for `url`, good until the run has ended; it is told to nobody else."""

    run_id: UUID
    epoch: int
    lease_seconds: float
    url: str | None
    token: str | None
    launch: dict[str, Any]


class HeartbeatAnswer(View):
    """Whether to go on. With `stop` end what you execute and report the end: the lease is not
    prolonged any more. `by` is who wanted that, `reason` what was said with it."""

    run_id: UUID
    stop: Literal["stopped", "steered", "yielded"] | None
    by: str | None
    reason: str | None
    lease_seconds: float


class ReportedAnswer(View):
    """The entries are on record; `next` is the number of the one after them."""

    run_id: UUID
    next: int


class EndedAnswer(View):
    """How the run ended, as it is on record."""

    run_id: UUID
    outcome: RunOutcome


class PageCodeAnswer(View):
    """A code that signs in to the page once: at `/ui/#code=…`. None is needed, and `code` is null,
    where authentication is switched off."""

    code: str | None
    expires_in_seconds: int


class PageTokenAnswer(View):
    """A token of the page, as good as the one that asked for its code, for as long as that is."""

    token: str
    expires_in_seconds: int


class RevokedAnswer(View):
    """The token is good for nothing any more; `wasKnown` when it was one of the page."""

    was_known: bool
