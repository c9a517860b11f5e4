"""Rules about the log alone: order, caps, and lifecycles."""

from collections import Counter
from collections.abc import Iterator

from world.checker.folding import Folded
from world.checker.history import BIRTHS, History

ONCE = ("SpawnRequested", "SpawnRefused", "SessionCreated", "RunStarted", "RunEnded")
ONCE_TOO = ("RunAnnounced", "RunArchived", "AnnouncementAcknowledged")
DECIDED = ("SessionCreated", "SpawnRefused")
ONCE_OF_A_MESSAGE = ("MessageReceived", "ContinuationPlanned", "RunContinued", "ArchiveScheduled")


def in_order(history: History, _: Folded) -> Iterator[str]:
    """Yield gaps in positions or versions, and times that run backwards."""
    versions: Counter[str] = Counter()
    before = None
    for number, event in enumerate(history.events, start=1):
        if event.position != number:
            yield f"position {number} is missing: {event.position} stands there"
            return
        versions[event.stream] += 1
        if event.version != versions[event.stream]:
            yield f"{event.stream} has version {event.version} at position {number}"
        if before is not None and event.recorded_at < before.recorded_at:
            yield f"position {number} was recorded before the one that stands before it"
        before = event


def whole_appends(history: History, _: Folded) -> Iterator[str]:
    """Yield appends whose events are not adjacent, up to the last position that each names."""
    last = 0
    for event in history.events:
        if event.position > last:
            last = event.append_last
            if not event.position <= last <= len(history.events):
                yield f"the append at position {event.position} ends at {last}"
        elif event.append_last != last:
            yield f"position {event.position} is of an append that ends at {event.append_last}"


def caps_kept(history: History, _: Folded) -> Iterator[str]:
    """Yield sessions with more active children than the cap allows, at any position."""
    counted: dict[str, set[str]] = {}
    admitted: set[str] = set()
    for event in history.events:
        places = counted.setdefault(event.stream, set())
        run_id = str(event.facts.get("runId"))
        if event.type == "ChildAdmitted":
            if event.facts["activeChildren"] != len(places):
                yield (
                    f"position {event.position} was decided from {event.facts['activeChildren']}"
                    f" active children of {event.stream}, and there were {len(places)}"
                )
            if event.facts["maxChildren"] != history.cap:
                cap = event.facts["maxChildren"]
                yield f"position {event.position} was decided with the cap {cap}"
            if run_id in admitted:
                yield f"position {event.position} admits {run_id} once more"
            places.add(run_id)
            admitted.add(run_id)
            if len(places) > history.cap:
                yield f"{event.stream} has {len(places)} children at position {event.position}"
        elif event.type == "ChildReleased":
            if run_id not in places:
                yield f"position {event.position} releases {run_id}, which holds no place"
            places.discard(run_id)


def lives_are_whole(history: History, folded: Folded) -> Iterator[str]:
    """Yield runs with a repeated step, both refused and created, or without an end."""
    for run_id, stream in folded.runs.items():
        types = Counter(event.type for event in stream.events)
        for name in (*ONCE, *ONCE_TOO, *ONCE_OF_A_MESSAGE):
            if types[name] > 1:
                yield f"run {run_id} has {types[name]} {name}"
        if stream.events[0].type not in BIRTHS:
            yield f"run {run_id} begins with {stream.events[0].type}"
        created = types["SessionCreated"] + types["ContinuationPlanned"]
        if types["SpawnRefused"] + created != 1:
            yield f"run {run_id} was neither refused nor created, or both"
        if created and not (types["RunEnded"] and types["RunAnnounced"]):
            yield f"run {run_id} was accepted and never came to its announcement"


def places_are_free_again(history: History, folded: Folded) -> Iterator[str]:
    """Yield runs that still count against a cap when every run is over."""
    for key, session in folded.sessions.items():
        if held := session.counted_at(len(history.events)):
            yield f"session {key} still counts {', '.join(held)}"


def batches_are_whole(history: History, folded: Folded) -> Iterator[str]:
    """Yield batches that were not requested in one append, or not all created or refused in one."""
    for batch_id, members in folded.batches.items():
        ids = [str(member.run_id) for member in members]
        named = [list(member.facts["batch"]["runIds"]) for member in members]
        if named != [ids] * len(ids) or len({member.append_last for member in members}) != 1:
            yield f"batch {batch_id} was not asked for in one append: {', '.join(ids)}"
        decided = [
            event for run_id in ids for event in folded.runs[run_id].events if event.type in DECIDED
        ]
        kinds = {event.type for event in decided}
        if len(kinds) != 1 or len(decided) != len(ids):
            yield f"batch {batch_id} has {len(ids)} runs, and {len(decided)} of {sorted(kinds)}"
        elif len({event.append_last for event in decided}) != 1:
            yield f"batch {batch_id} has {kinds} in several appends"
