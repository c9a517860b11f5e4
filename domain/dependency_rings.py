"""Whether runs would wait for each other in a ring, and so for ever.

To wait for a run is to wait for all below it too, and for whatever those wait for. Descendants are
found from below: a run knows those above it since it was asked for.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from uuid import UUID

from domain.run.state import Run

PATH_SHOWN_MAX = 20


def find_cycle(
    ancestors: Collection[UUID], targets: Iterable[UUID], waiting: Collection[Run]
) -> tuple[UUID, ...] | None:
    """The way from one of `targets` to one of `ancestors`: who waits, and for whom, in turn. None
    when a child below these ancestors may wait for the targets.

    `waiting` are all runs of the tree that are prepared or wait, and depend on others. A new run is
    waited for by nobody and has nobody below it, so only a way to one above it closes a ring.
    """
    ends_after = _waiting_at_or_below(waiting)
    came_from: dict[UUID, tuple[UUID, ...]] = dict.fromkeys(targets, ())
    ahead = list(came_from)
    while ahead:
        run_id = ahead.pop()
        if run_id in ancestors:
            return _path_to(run_id, came_from)
        for run in ends_after.get(run_id, ()):
            by = (run_id,) if run.run_id == run_id else (run_id, run.run_id)
            for one in unmet_dependencies(run):
                if one not in came_from:
                    came_from[one] = by
                    ahead.append(one)
    return None


def _waiting_at_or_below(waiting: Iterable[Run]) -> dict[UUID, list[Run]]:
    """By the id of a run those that wait and are this run, or below it."""
    found: dict[UUID, list[Run]] = {}
    for run in waiting:
        for run_id in (run.run_id, *(run.ancestors or ())):
            found.setdefault(run_id, []).append(run)
    return found


def _path_to(run_id: UUID, came_from: Mapping[UUID, tuple[UUID, ...]]) -> tuple[UUID, ...]:
    way = [run_id]
    while by := came_from[way[-1]]:
        way += reversed(by)
    return tuple(reversed(way))


def unmet_dependencies(run: Run) -> Sequence[UUID]:
    """What a run that is prepared or waits has still to wait for, as far as is recorded."""
    if run.waits_for is not None:
        return run.waits_for
    return tuple(one.run_id for one in run.dependencies or ())


def render_path(way: Sequence[UUID]) -> str:
    """The runs between the first and the last of a way, in words."""
    between = [f"run {one}" for one in way[1:-1]]
    more = len(between) - PATH_SHOWN_MAX
    shown = " → ".join(between[:PATH_SHOWN_MAX])
    return f"{shown} and {more} more" if more > 0 else shown
