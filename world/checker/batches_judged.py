"""Several runs of one request: there are all of them or none, whoever died meanwhile."""

from collections.abc import Iterator, Sequence

from world.checker.folding import Folded
from world.checker.history import Call, Event, History
from world.checker.spawns_judged import UNRECORDED

DECIDED = ("SessionCreated", "SpawnRefused")


def batches_are_whole(history: History, folded: Folded) -> Iterator[str]:
    """All are asked for in one append, and in one append created or refused: never only some."""
    for batch_id, members in folded.batches.items():
        ids = [str(one.run_id) for one in members]
        named = [list(one.facts["batch"]["runIds"]) for one in members]
        if named != [ids] * len(ids) or len({one.append_last for one in members}) != 1:
            yield f"batch {batch_id} was not asked for in one append: {', '.join(ids)}"
        decided = [
            event for run_id in ids for event in folded.runs[run_id].events if event.type in DECIDED
        ]
        kinds = {event.type for event in decided}
        if len(kinds) != 1 or len(decided) != len(ids):
            yield f"batch {batch_id} has {len(ids)} runs, and {len(decided)} of {sorted(kinds)}"
        elif len({event.append_last for event in decided}) != 1:
            yield f"batch {batch_id} has {kinds} in several appends"


def accepted_batches_are_recorded(history: History, folded: Folded) -> Iterator[str]:
    """Each accepted batch is there once, with the runs that its caller was told of, in their
    order, at or before its answer."""
    for call in _batches(history):
        if call.status != 201:
            continue
        told, there = call.answer["runs"], _members(call, folded)
        ids = [one["runId"] for one in told]
        if ids != [one.run_id for one in there]:
            yield f"{call.told} was accepted as {ids}; on record are {_ids(there)}"
            continue
        if call.answer["batchId"] != there[0].facts["batch"]["batchId"]:
            yield f"{call.told} was told of batch {call.answer['batchId']}, which is another"
        labels = [f"{call.label}-{number}" for number in range(1, len(ids) + 1)]
        if labels != [one["label"] for one in told] or labels != [
            one.facts["label"] for one in there
        ]:
            yield f"{call.told} was told of other labels than {labels}"
        for one in told:
            events = folded.runs[one["runId"]].events
            created = [event for event in events if event.type == "SessionCreated"]
            keys = [event.facts["childSessionKey"] for event in created]
            if keys != [one["childSessionKey"]] or created[0].position > (call.position or 0):
                yield f"{call.told} was told of session {one['childSessionKey']} too early"


def refused_batches_are_recorded(history: History, folded: Folded) -> Iterator[str]:
    """Each refusal that its caller was told is on record, by the same rule."""
    for call in _batches(history):
        rule, run_id = call.answer.get("rule"), call.answer.get("runId")
        if call.status not in (403, 422) or rule is None:
            continue
        members = [str(one.run_id) for one in _members(call, folded)]
        if run_id not in members:
            yield f"{call.told} was refused as {run_id}; on record are {members}"
            continue
        events = folded.runs[str(run_id)].events
        rules = [one.facts["rule"] for one in events if one.type == "SpawnRefused"]
        if rules != [rule]:
            yield f"{call.told} was refused by {rule}, on record by {rules}"


def one_request_is_one_batch(history: History, folded: Folded) -> Iterator[str]:
    """However often it was asked under its key, and whoever died meanwhile."""
    asked: dict[str, list[Call]] = {}
    for call in _batches(history):
        asked.setdefault(str(call.label), []).append(call)
    for label, ids in folded.batches_by_label.items():
        if label not in asked:
            yield f"batch {ids[0]} is one that nobody has asked for"
        elif len(ids) > 1:
            yield f"batch {label} is on record {len(ids)} times: {', '.join(ids)}"
    for label, calls in asked.items():
        if label in folded.batches_by_label:
            continue
        if all(call.answer.get("code") in UNRECORDED or call.status is None for call in calls):
            continue
        yield f"{calls[0].told} was answered with {calls[0].status} and is not on record"


def _batches(history: History) -> Iterator[Call]:
    return (call for call in history.calls if call.what == "batch")


def _members(call: Call, folded: Folded) -> Sequence[Event]:
    """The runs of the batches with its label, in their order."""
    ids = folded.batches_by_label.get(str(call.label), [])
    return [one for batch_id in ids for one in folded.batches[batch_id]]


def _ids(asked: Sequence[Event]) -> str:
    return ", ".join(str(one.run_id) for one in asked) or "none"
