"""What came of the rounds: medians, best, spread and ratios, as a table and as JSON. Pure."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

from benchmarks.peers.contenders import OWN, Contender
from benchmarks.report import Timing, aligned


class Summary(NamedTuple):
    """Lives a second of one contender with so many callers, over all rounds. `ratio` is how often
    as many spawnlog lives: median by median, None for itself."""

    contender: Contender
    callers: int
    rounds: int
    median: float
    best: float
    worst: float
    p50_ms: float
    ratio: float | None


Rounds = Mapping[tuple[Contender, int], Sequence[Timing]]


def summaries(rounds: Rounds) -> list[Summary]:
    """One for each contender and number of callers that was measured, by callers."""
    medians = {key: median(one.per_second for one in timings) for key, timings in rounds.items()}
    made: list[Summary] = []
    for (contender, callers), timings in sorted(rounds.items(), key=lambda item: item[0][1]):
        rates = [one.per_second for one in timings]
        found = medians[contender, callers]
        own = medians.get((OWN, callers))
        ratio = own / found if own is not None and contender != OWN and found else None
        p50 = median(one.p50_ms for one in timings)
        made.append(
            Summary(contender, callers, len(rates), found, max(rates), min(rates), p50, ratio)
        )
    return made


HEAD = ("contender", "door", "callers", "lives/s", "best", "worst", "p50 ms", "spawnlog : it")


def peers_table(found: Sequence[Summary]) -> str:
    """The summaries as a table."""
    rows = [
        (
            one.contender.peer,
            one.contender.door,
            str(one.callers),
            *(f"{value:.1f}" for value in (one.median, one.best, one.worst, one.p50_ms)),
            "-" if one.ratio is None else f"{one.ratio:.2f}",
        )
        for one in found
    ]
    return aligned([HEAD, *rows])


def peers_document(
    found: Sequence[Summary],
    rounds: Rounds,
    missing: Mapping[str, str],
    machine: Mapping[str, Any],
    rules: Sequence[str],
) -> dict[str, Any]:
    """Everything for a program; `missing` says why a contender was not measured."""
    return {
        "machine": dict(machine),
        "rules": list(rules),
        "missing": dict(missing),
        "contenders": [
            {
                "contender": one.contender.name,
                "work": one.contender.work,
                "callers": one.callers,
                "median": one.median,
                "best": one.best,
                "worst": one.worst,
                "p50Ms": one.p50_ms,
                "ratio": one.ratio,
                "rounds": [timing.per_second for timing in rounds[one.contender, one.callers]],
            }
            for one in found
        ],
    }
