"""A short history of a batch that waits for a run, of a run that fails with another, and of a batch
that is refused."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from tests.soak.history import Call, Event, History
from tests.support.builders.small_history import REQUESTER, START, with_event
from tests.support.faults.history_mutations import (
    Mutation,
    added_event,
    changed_call,
    changed_event,
    missing_event,
)

CAP = 5
_SESSION = f"session:{REQUESTER}"


def _key(run_id: str) -> str:
    return f"agent:main:subagent:{run_id}"


def _asked(label: str, *awaited: tuple[str, str], **more: Any) -> dict[str, Any]:
    dependencies = [{"runId": run_id, "require": require} for run_id, require in awaited]
    asked = {"label": label, "requester": REQUESTER, "mode": "run", "dependencies": dependencies}
    return {**asked, **more}


def _member(label: str, *run_ids: str, index: int) -> dict[str, Any]:
    batch = {"batchId": f"batch of {label}", "index": index, "runIds": list(run_ids)}
    awaited = [("t", "success")] if label == "p" else []
    return _asked(f"{label}-{index + 1}", *awaited, batch=batch)


def _place(run_id: str, taken: int) -> dict[str, Any]:
    return {"runId": run_id, "activeChildren": taken, "maxChildren": CAP}


_CREATED = "SessionCreated"
_ENDS = {"outcome": "error", "reason": "dependency_failed"}

# Stream, type, the last position of its append, and what is kept of its payload. `t` is waited for
# by the batch `p1`, `p2`; `f` fails, and `w` with it; the batch `r1`, `r2` is refused.
_STORY: tuple[tuple[str, str, int, Mapping[str, Any]], ...] = (
    (_SESSION, "SessionObserved", 1, {}),
    ("run:t", "SpawnRequested", 3, _asked("t")),
    (_SESSION, "ChildAdmitted", 3, _place("t", 0)),
    ("run:t", _CREATED, 5, {"childSessionKey": _key("t")}),
    ("run:t", "RunQueued", 5, {}),
    ("run:p1", "SpawnRequested", 9, _member("p", "p1", "p2", index=0)),
    ("run:p2", "SpawnRequested", 9, _member("p", "p1", "p2", index=1)),
    (_SESSION, "ChildAdmitted", 9, _place("p1", 1)),
    (_SESSION, "ChildAdmitted", 9, _place("p2", 2)),
    ("run:p1", _CREATED, 13, {"childSessionKey": _key("p1")}),
    ("run:p1", "RunWaits", 13, {"runIds": ["t"]}),
    ("run:p2", _CREATED, 13, {"childSessionKey": _key("p2")}),
    ("run:p2", "RunWaits", 13, {"runIds": ["t"]}),
    ("run:t", "RunClaimed", 14, {}),
    ("run:t", "RunEnded", 16, {"outcome": "success"}),
    (_SESSION, "ChildReleased", 16, {"runId": "t"}),
    ("run:t", "RunAnnounced", 17, {"disposition": "inbox"}),
    ("run:p1", "DependencyMet", 19, {"runId": "t", "outcome": "success"}),
    ("run:p1", "RunQueued", 19, {}),
    ("run:p2", "DependencyMet", 21, {"runId": "t", "outcome": "success"}),
    ("run:p2", "RunQueued", 21, {}),
    ("run:p1", "RunClaimed", 22, {}),
    ("run:p1", "RunEnded", 24, {"outcome": "success"}),
    (_SESSION, "ChildReleased", 24, {"runId": "p1"}),
    ("run:p1", "RunAnnounced", 25, {"disposition": "inbox"}),
    ("run:p2", "RunClaimed", 26, {}),
    ("run:p2", "RunEnded", 28, {"outcome": "success"}),
    (_SESSION, "ChildReleased", 28, {"runId": "p2"}),
    ("run:p2", "RunAnnounced", 29, {"disposition": "inbox"}),
    ("run:f", "SpawnRequested", 31, _asked("f")),
    (_SESSION, "ChildAdmitted", 31, _place("f", 0)),
    ("run:f", _CREATED, 33, {"childSessionKey": _key("f")}),
    ("run:f", "RunQueued", 33, {}),
    ("run:w", "SpawnRequested", 35, _asked("w", ("f", "success"), ("t", "ended"))),
    (_SESSION, "ChildAdmitted", 35, _place("w", 1)),
    ("run:w", _CREATED, 38, {"childSessionKey": _key("w")}),
    ("run:w", "DependencyMet", 38, {"runId": "t", "outcome": "success"}),
    ("run:w", "RunWaits", 38, {"runIds": ["f"]}),
    ("run:f", "RunEnded", 40, {"outcome": "stopped", "reason": "stopped"}),
    (_SESSION, "ChildReleased", 40, {"runId": "f"}),
    ("run:f", "RunAnnounced", 41, {"disposition": "inbox"}),
    ("run:w", "RunEnded", 43, _ENDS),
    (_SESSION, "ChildReleased", 43, {"runId": "w"}),
    ("run:w", "RunAnnounced", 44, {"disposition": "inbox"}),
    ("run:r1", "SpawnRequested", 48, _member("r", "r1", "r2", index=0)),
    ("run:r2", "SpawnRequested", 48, _member("r", "r1", "r2", index=1)),
    ("run:r1", "SpawnRefused", 48, {"rule": "agent_unknown"}),
    ("run:r2", "SpawnRefused", 48, {"rule": "agent_unknown"}),
)


def _call(name: str, what: str, began: int, position: int, status: int, **more: Any) -> Call:
    plain: dict[str, Any] = {"number": 1, "server": 0, "requester": REQUESTER}
    label, answer = more["label"], more["answer"]
    facts = {"key": f"key of {label}", "label": label, "answer": answer}
    at: dict[str, Any] = {
        "began": began,
        "ended": began + 5,
        "position": position,
        "status": status,
    }
    return Call(caller=name, what=what, **plain, **at, **facts)


def _told(run_id: str, **more: Any) -> dict[str, Any]:
    return {"runId": run_id, "childSessionKey": _key(run_id), **more}


_RUNS = [_told("p1", label="p-1"), _told("p2", label="p-2")]
_ACCEPTED = {"batchId": "batch of p", "runs": _RUNS}
_REFUSED = {"batchId": "batch of r", "runId": "r1", "rule": "agent_unknown", "code": "spawn_error"}
_CALLS = (
    _call("target", "spawn", 10, 5, 201, label="t", answer=_told("t")),
    _call("batch", "batch", 20, 13, 201, label="p", answer=_ACCEPTED),
    _call("failing", "spawn", 30, 33, 201, label="f", answer=_told("f")),
    _call("waiting", "spawn", 40, 38, 201, label="w", answer=_told("w")),
    _call("refused", "batch", 50, 48, 422, label="r", answer=_REFUSED),
)
_INBOX = (("t", 17), ("p1", 25), ("p2", 29), ("f", 41), ("w", 44))


def related_history() -> History:
    """The history."""
    versions: dict[str, int] = {}
    events = []
    for position, (stream, kind, last, facts) in enumerate(_STORY, start=1):
        versions[stream] = versions.get(stream, 0) + 1
        run_id = stream.removeprefix("run:") if stream.startswith("run:") else None
        at = START + timedelta(seconds=position)
        events.append(Event(position, stream, versions[stream], kind, at, last, run_id, facts))
    return History(_CALLS, tuple(events), {REQUESTER: _INBOX}, CAP)


def _unasked(caller: str) -> Mutation:
    return lambda history: replace(
        history, calls=tuple(one for one in history.calls if one.caller != caller)
    )


CONTRADICTIONS: Mapping[str, tuple[str, Mutation]] = {
    "a part of a batch": ("batches_are_whole", missing_event(12)),
    "a batch that was asked for in two parts": (
        "batches_are_whole",
        changed_event(6, facts={"batch": {"batchId": "batch of p", "index": 0, "runIds": ["p1"]}}),
    ),
    "a batch that was created twice": ("batches_are_whole", changed_event(12, append_last=12)),
    "a batch refused in part": ("batches_are_whole", added_event(47, stream="run:p2", run_id="p2")),
    "a batch of other runs": (
        "accepted_batches_are_recorded",
        changed_call("batch", answer={"runs": _RUNS[::-1]}),
    ),
    "a batch under another id": (
        "accepted_batches_are_recorded",
        changed_call("batch", answer={"batchId": "batch of r"}),
    ),
    "a batch that was told of too early": (
        "accepted_batches_are_recorded",
        changed_call("batch", position=9),
    ),
    "a batch refused by another rule": (
        "refused_batches_are_recorded",
        changed_event(47, facts={"rule": "depth"}),
    ),
    "a batch refused as another run": (
        "refused_batches_are_recorded",
        changed_call("refused", answer={"runId": "p1"}),
    ),
    "a batch that nobody asked for": ("one_request_is_one_batch", _unasked("batch")),
    "a batch that is there twice": (
        "one_request_is_one_batch",
        changed_event(
            46, facts={"batch": {"batchId": "another", "index": 1, "runIds": ["r1", "r2"]}}
        ),
    ),
    "a run in line before all is met": ("queued_when_all_is_met", missing_event(18)),
    "a run that met another twice": (
        "queued_when_all_is_met",
        added_event(20, stream="run:p2", run_id="p2"),
    ),
    "a run that met what had not ended": ("met_when_done", missing_event(15)),
    "a run that met what had failed": (
        "met_when_done",
        lambda history: with_event(
            with_event(history, 15, facts={"outcome": "error"}), 18, facts={"outcome": "error"}
        ),
    ),
    "a run that met another end": (
        "met_when_done",
        changed_event(18, facts={"outcome": "timeout"}),
    ),
    "a run that met what had somebody below": (
        "met_when_done",
        lambda history: with_event(
            with_event(history, 17, type="AnnouncementAcknowledged"),
            7,
            facts={"requester": _key("t")},
        ),
    ),
    "a run that failed for no reason": (
        "failed_for_a_reason",
        changed_event(39, facts={"outcome": "success"}),
    ),
    "a run that failed and had started": ("failed_for_a_reason", added_event(33, stream="run:w")),
    "a run that waits for ever": ("those_that_wait_go_on", missing_event(42)),
    "a run that waits for somebody else": (
        "those_that_wait_go_on",
        changed_event(38, facts={"runIds": ["p1"]}),
    ),
    "a run announced before those below it": (
        "announced_after_all_below",
        changed_event(7, facts={"requester": _key("t")}),
    ),
}
