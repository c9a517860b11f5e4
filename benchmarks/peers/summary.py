"""Results of the rounds: medians, best, spread and ratios, as a table and as JSON. Pure."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

from benchmarks.peers.contenders import OWN, Contender, Lives
from benchmarks.processor import Spent
from benchmarks.report import aligned


class Summary(NamedTuple):
    """Lives per second of one contender with this number of callers, over all rounds.

    Attributes:
        ratio: Median of spawnlog divided by its own median; None for spawnlog.
        cpu_ms: Median processor time of a life in its program and in its database, in milliseconds;
            None if unknown.
    """

    contender: Contender
    callers: int
    rounds: int
    median: float
    best: float
    worst: float
    p50_ms: float
    cpu_ms: Spent | None
    ratio: float | None


Rounds = Mapping[tuple[Contender, int], Sequence[Lives]]


def summaries(rounds: Rounds) -> list[Summary]:
    """Return a summary of each measured contender and number of callers, ordered by callers."""
    medians = {
        key: median(life.timing.per_second for life in lives) for key, lives in rounds.items()
    }
    made: list[Summary] = []
    for (contender, callers), lives in sorted(rounds.items(), key=lambda item: item[0][1]):
        rates = [life.timing.per_second for life in lives]
        found = medians[contender, callers]
        own = medians.get((OWN, callers))
        ratio = own / found if own is not None and contender != OWN and found else None
        made.append(
            Summary(
                contender,
                callers,
                len(rates),
                found,
                max(rates),
                min(rates),
                median(life.timing.p50_ms for life in lives),
                _median_cpu([life.cpu_ms for life in lives]),
                ratio,
            )
        )
    return made


def _median_cpu(rounds: Sequence[Spent | None]) -> Spent | None:
    known = [item for item in rounds if item is not None]
    return Spent(*map(median, zip(*known, strict=True))) if known else None


HEAD = (
    *("contender", "door", "callers", "lives/s", "best", "worst", "p50 ms"),
    *("server CPU ms", "database CPU ms", "spawnlog : it"),
)


def peers_table(found: Sequence[Summary]) -> str:
    """Return the summaries as a table."""
    rows = [
        (
            item.contender.peer,
            item.contender.door,
            str(item.callers),
            *(f"{value:.1f}" for value in (item.median, item.best, item.worst, item.p50_ms)),
            *(("-", "-") if item.cpu_ms is None else (f"{value:.2f}" for value in item.cpu_ms)),
            "-" if item.ratio is None else f"{item.ratio:.2f}",
        )
        for item in found
    ]
    return aligned([HEAD, *rows])


def peers_document(
    found: Sequence[Summary],
    rounds: Rounds,
    missing: Mapping[str, str],
    machine: Mapping[str, Any],
    rules: Sequence[str],
) -> dict[str, Any]:
    """Return all results as JSON values. `missing` says why a contender was not measured."""
    return {
        "machine": dict(machine),
        "rules": list(rules),
        "missing": dict(missing),
        "contenders": [
            {
                "contender": item.contender.name,
                "work": item.contender.work,
                "callers": item.callers,
                "median": item.median,
                "best": item.best,
                "worst": item.worst,
                "p50Ms": item.p50_ms,
                "serverCpuMs": item.cpu_ms.server if item.cpu_ms is not None else None,
                "databaseCpuMs": item.cpu_ms.postgres if item.cpu_ms is not None else None,
                "ratio": item.ratio,
                "rounds": [
                    lives.timing.per_second for lives in rounds[item.contender, item.callers]
                ],
            }
            for item in found
        ],
    }
