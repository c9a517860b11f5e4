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
    medians = {key: median(one.timing.per_second for one in lives) for key, lives in rounds.items()}
    made: list[Summary] = []
    for (contender, callers), lives in sorted(rounds.items(), key=lambda item: item[0][1]):
        rates = [one.timing.per_second for one in lives]
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
                median(one.timing.p50_ms for one in lives),
                _median_cpu([one.cpu_ms for one in lives]),
                ratio,
            )
        )
    return made


def _median_cpu(rounds: Sequence[Spent | None]) -> Spent | None:
    known = [one for one in rounds if one is not None]
    return Spent(*map(median, zip(*known, strict=True))) if known else None


HEAD = (
    *("contender", "door", "callers", "lives/s", "best", "worst", "p50 ms"),
    *("server CPU ms", "database CPU ms", "spawnlog : it"),
)


def peers_table(found: Sequence[Summary]) -> str:
    """Return the summaries as a table."""
    rows = [
        (
            one.contender.peer,
            one.contender.door,
            str(one.callers),
            *(f"{value:.1f}" for value in (one.median, one.best, one.worst, one.p50_ms)),
            *(("-", "-") if one.cpu_ms is None else (f"{value:.2f}" for value in one.cpu_ms)),
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
    """Return all results as JSON values. `missing` says why a contender was not measured."""
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
                "serverCpuMs": one.cpu_ms.server if one.cpu_ms is not None else None,
                "databaseCpuMs": one.cpu_ms.postgres if one.cpu_ms is not None else None,
                "ratio": one.ratio,
                "rounds": [lives.timing.per_second for lives in rounds[one.contender, one.callers]],
            }
            for one in found
        ],
    }
