"""History checker: compare the calls that clients noted with the log, and name each contradiction.

`python -m world.check FOLDER` exits with 0 if there is no contradiction, else with 1.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from pathlib import Path

from world.checker import (
    log_judged,
    messages_judged,
    order_judged,
    reads_judged,
    spawns_judged,
    waiting_judged,
)
from world.checker.folding import Folded
from world.checker.history import History, read_history

Rule = Callable[[History, Folded], Iterable[str]]

RULES: Mapping[str, Rule] = {
    rule.__name__: rule
    for rule in (
        log_judged.in_order,
        log_judged.whole_appends,
        log_judged.caps_kept,
        log_judged.lives_are_whole,
        log_judged.places_are_free_again,
        log_judged.batches_are_whole,
        spawns_judged.answers_are_known,
        spawns_judged.accepted_are_recorded,
        spawns_judged.refused_are_recorded,
        spawns_judged.refused_by_the_cap,
        spawns_judged.asked_once_is_recorded_once,
        spawns_judged.one_key_is_one_run,
        spawns_judged.announced_once,
        spawns_judged.stopped_are_over,
        spawns_judged.acknowledged_are_recorded,
        reads_judged.runs_as_recorded,
        reads_judged.lists_as_recorded,
        reads_judged.sessions_as_recorded,
        reads_judged.inboxes_as_recorded,
        reads_judged.lanes_as_recorded,
        reads_judged.pages_as_recorded,
        reads_judged.past_is_answered_as_past,
        reads_judged.nothing_is_missing,
        messages_judged.accepted_messages_are_recorded,
        messages_judged.queued_messages_are_recorded,
        messages_judged.sessions_go_on_in_turn,
        messages_judged.put_away_in_turn,
        messages_judged.turned_away_for_a_reason,
        messages_judged.stopped_sessions_are_over,
        waiting_judged.queued_when_all_is_met,
        waiting_judged.met_when_done,
        waiting_judged.failed_for_a_reason,
        waiting_judged.those_that_wait_go_on,
        waiting_judged.announced_after_all_below,
        order_judged.promises_are_kept,
        order_judged.spawns_in_order,
        order_judged.answers_behind_what_they_tell,
        order_judged.those_alive_answer,
    )
}
TOLD_MAX = 20


def check(history: History) -> dict[str, list[str]]:
    """Return the first contradictions of each rule that is broken, by rule."""
    folded = Folded(history.events)
    found = {name: list(islice(rule(history, folded), TOLD_MAX)) for name, rule in RULES.items()}
    return {name: value for name, value in found.items() if value}


def summary(history: History) -> str:
    """Return how many events and calls were checked, by kind and status."""
    kinds = Counter(
        f"{call.kind} {'?' if call.status is None else call.status}" for call in history.calls
    )
    result = ", ".join(f"{kind}: {count}" for kind, count in sorted(kinds.items()))
    return f"{len(history.events)} events, {len(history.calls)} calls ({result})"


def main(folder: Path) -> int:
    """Check a folder and print the contradictions. Return the exit status."""
    history = read_history(folder)
    print(f"checked {summary(history)}")
    broken = check(history)
    for name, value in broken.items():
        print(f"VIOLATED {name}:")
        for answer in value:
            print(f"  {answer}")
    print("verdict: " + (f"{len(broken)} rules are violated" if broken else "no contradiction"))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
