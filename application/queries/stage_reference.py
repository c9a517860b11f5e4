"""Resolves stage references such as `run:reviewer@started` to a run and a position."""

import re
from collections.abc import Sequence
from uuid import UUID

from application.ports.registry import RunQuery
from application.queries.access import Caller
from application.queries.errors import QueryError
from application.queries.services import QueryServices
from application.queries.session_reference import UUID_TEXT
from domain.run.lifecycle import LIFECYCLE
from domain.run.state import Run
from domain.values.moments import STAGE_PREFIX

ID_PREFIX_CHARACTERS_MIN = 8
RUNS_EXAMINED_MAX = 2_000
RUNS_AT_ONCE = 200
CANDIDATES_SHOWN_MAX = 5
NEWEST_SUFFIX = "@last"
_ID_PREFIX = re.compile(rf"[0-9a-f-]{{{ID_PREFIX_CHARACTERS_MIN},35}}")
REACHING = {
    stage: tuple(
        {
            event.__name__: None
            for before, cells in LIFECYCLE.items()
            for event, after in cells.items()
            if after == stage != before
        }
    )
    for stage in LIFECYCLE
    if stage != "unborn"
}
"""By stage, the events with which a run reaches it."""


async def position_of_stage(services: QueryServices, caller: Caller, text: str, head: int) -> int:
    """Return the position at which the run that `text` names reached the stage that it names.

    Raises:
        QueryError: The text is malformed, it names no run or several that the caller may see, or
            the run has not reached the stage.
    """
    name, at_sign, stage = text.removeprefix(STAGE_PREFIX).rpartition("@")
    if not name or not at_sign or stage not in REACHING:
        raise QueryError(
            "invalid_request",
            "a stage of a run has the form run:<name>@<stage>, where the name is a run id, 8 or"
            " more of its first characters, a label, or <label>@last for the newest run with"
            f" that label, and the stage is one of {', '.join(REACHING)}",
        )
    run = await _named_run(services, caller, name, stage, head)
    events = await services.work.log.read(
        limit=1, run_id=run.run_id, types=REACHING[stage], until=head
    )
    if not events:
        raise QueryError(
            "not_found",
            f"run {run.run_id} has not reached {stage}; it is {run.stage}",
            position=head,
            runId=str(run.run_id),
        )
    return events[0].envelope.position


async def _named_run(
    services: QueryServices, caller: Caller, name: str, stage: str, head: int
) -> Run:
    """Return the run with this id, else with this label, else with this beginning of its id.

    Of the runs of one session, the newest is meant. A refused run has its label too, but if other
    runs have it, it is meant only with the stage `refused`.
    """
    is_newest = name.endswith(NEWEST_SUFFIX)
    name = name.removesuffix(NEWEST_SUFFIX)
    registry, word = services.work.registry, name.lower()
    visible: list[Run] = []
    if UUID_TEXT.fullmatch(word):
        run = await registry.run(UUID(word), at=head)
        visible = await _visible(services, caller, [run] if run is not None else [], {})
    else:
        visible = await _labelled(services, caller, name, stage, head)
        if not visible and not is_newest and _ID_PREFIX.fullmatch(word):
            found = await registry.runs_by_id_prefix(word, limit=RUNS_AT_ONCE)
            visible = await _visible(services, caller, found, {})
    meant = _eligible(visible, stage) or visible
    if not meant:
        raise QueryError(
            "not_found",
            "no run on record has that name; give its id, 8 or more of its first characters, or"
            " its label",
            position=head,
        )
    if _are_several(meant) and not is_newest:
        raise QueryError("invalid_request", f"several runs have that name: {_candidates(meant)}")
    return meant[0]


async def _labelled(
    services: QueryServices, caller: Caller, label: str, stage: str, head: int
) -> list[Run]:
    """Return the newest runs with this label that the caller may see, from a bounded scan.

    The scan stops once several sessions match.
    """
    query, after_cursor = RunQuery.where(label=label), None
    visible: list[Run] = []
    known: dict[str, bool] = {}
    for _ in range(RUNS_EXAMINED_MAX // RUNS_AT_ONCE):
        page = await services.work.registry.runs(
            query, at=head, limit=RUNS_AT_ONCE, after_cursor=after_cursor
        )
        visible += await _visible(services, caller, page, known)
        if len(page) < RUNS_AT_ONCE or _are_several(_eligible(visible, stage)):
            break
        after_cursor = page[-1].created_position
    return visible


async def _visible(
    services: QueryServices, caller: Caller, runs: Sequence[Run], known: dict[str, bool]
) -> list[Run]:
    return [
        run
        for run in runs
        if await services.access.covers_run(caller, run, known)
        or await services.access.is_sibling(caller, run)
    ]


def _eligible(runs: Sequence[Run], stage: str) -> list[Run]:
    """Return the runs that a stage may mean: refused runs only for `refused`."""
    return [run for run in runs if (run.stage == "refused") == (stage == "refused")]


def _are_several(runs: Sequence[Run]) -> bool:
    return len({run.session_id for run in runs}) > 1


def _candidates(runs: Sequence[Run]) -> str:
    shown = ", ".join(str(run.run_id) for run in runs[:CANDIDATES_SHOWN_MAX])
    further = len(runs) - CANDIDATES_SHOWN_MAX
    listed = f"{shown} and {further} more" if further > 0 else shown
    return f"{listed}; give its id, or <label>@last for the newest"
