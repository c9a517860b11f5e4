"""Rules about real time: an answer includes everything that was confirmed before its request."""

from collections.abc import Iterable, Iterator
from operator import attrgetter

from world.checker.folding import Folded
from world.checker.history import ASKED, Call, Event, History

UNREADY = 503
SOON_NANOSECONDS = 5 * 10**9
"""Half of the time within which a request must arrive."""


def promises_are_kept(history: History, _: Folded) -> Iterator[str]:
    """Yield answers about the present that are older than a position returned before the call.

    A server that is not ready may know only the positions that it returned itself.
    """
    calls = [call for call in history.calls if call.position is not None]
    now = [call for call in calls if call.at is None]
    judged = list(after_the_highest(calls, [item for item in now if item.status != UNREADY]))
    for server in {call.server for call in calls}:
        own = [call for call in calls if call.server == server]
        unready = [item for item in now if item.status == UNREADY and item.server == server]
        judged += after_the_highest(own, unready)
    for call, high in judged:
        if (call.position or 0) < high:
            yield f"{call.told} was answered at {call.position}, after {high} had been told"


def spawns_in_order(history: History, folded: Folded) -> Iterator[str]:
    """Yield spawns and messages recorded before a position that was known when they were first
    sent.
    """
    calls = [call for call in history.calls if call.position is not None]
    for call, high in after_the_highest(calls, _first_asked(history.calls)):
        for item in folded.asked_by(call):
            if item.position <= high:
                yield f"{call.told} is on record at {item.position}, after {high} had been told"


def answers_behind_what_they_tell(history: History, folded: Folded) -> Iterator[str]:
    """Yield answers about a spawn or message whose position does not include it."""
    for call in history.calls:
        if call.kind not in ASKED or call.position is None:
            continue
        for run in (call.answer, *call.answer.get("runs", ())):
            stream = folded.runs.get(str(run.get("runId")))
            first: Event | None = stream.events[0] if stream else None
            if call.status == 202:
                # The run comes later; the answer is about the queued message.
                first = next(iter(folded.queued.get(str(run.get("runId")), ())), None)
            if first is not None and call.position < first.position:
                yield f"{call.told} was answered at {call.position} about position {first.position}"


def those_alive_answer(history: History, _: Folded) -> Iterator[str]:
    """Yield calls that soon failed without an answer, at a server that was not killed meanwhile.

    Later failures do not count: on a busy machine a caller may send its request too slowly, so that
    the server hangs up.
    """
    for call in history.calls if history.deaths is not None else ():
        is_soon = call.ended - call.began < SOON_NANOSECONDS
        if (
            call.status is None
            and is_soon
            and not any(
                number == call.server and call.began <= back and at <= call.ended
                for number, at, back in history.deaths or ()
            )
        ):
            yield f"{call.told} was not answered by server {call.server}, which was alive"


def _first_asked(calls: Iterable[Call]) -> list[Call]:
    """Return the earliest call of each spawn and message. A repetition may find the first one
    done.
    """
    first: dict[str, Call] = {}
    for call in sorted((call for call in calls if call.kind in ASKED), key=attrgetter("began")):
        first.setdefault(str(call.label), call)
    return list(first.values())


def after_the_highest(earlier: Iterable[Call], later: Iterable[Call]) -> Iterator[tuple[Call, int]]:
    """Yield each later call with the highest position that was returned before it began."""
    ended = sorted(earlier, key=attrgetter("ended"))
    high, following = 0, 0
    for call in sorted(later, key=attrgetter("began")):
        while following < len(ended) and ended[following].ended < call.began:
            high = max(high, ended[following].position or 0)
            following += 1
        yield call, high
