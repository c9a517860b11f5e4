"""Over generated histories: a diff makes the left into the right, a history makes each state, and
who set a field is who a search through all states finds."""

import random
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest

from application.queries.changes.diff import DiffView, GetDiff, get_diff
from application.queries.changes.history import GetRunHistory, RunHistoryView, get_run_history
from application.queries.changes.json_patch import apply_patch, is_same
from application.queries.views.session import session_record_view
from domain.run.state import Run
from domain.values.record import run_stream
from tests.support.builders.generated_pasts import GeneratedPast, Past, json_of, run_of
from tests.support.builders.reads_of_the_past import EVERYTHING

pytestmark = [pytest.mark.server, pytest.mark.long]

PAIRS = 12


def state_of(past: GeneratedPast, now: Past, run: Run) -> dict[str, Any]:
    """A run without what only other runs tell of it."""
    return {name: value for name, value in run_of(past, now, run).items() if name != "respawns"}


def documents(past: GeneratedPast, now: Past, ids: set[str], tree: str | None) -> dict[str, Any]:
    """Those of the runs and sessions that were there, in that tree or in all of them."""
    runs = {
        str(run.run_id): state_of(past, now, run)
        for run in now.runs.values()
        if str(run.run_id) in ids and tree in (None, run.requester.root_session_key)
    }
    sessions = {
        key: json_of(session_record_view(session))
        for key, session in now.sessions.items()
        if key in ids and tree in (None, session.root_session_key)
    }
    return {**runs, **sessions}


def touched(past: GeneratedPast, left: int, right: int) -> set[str]:
    """Whose streams have an event between two positions."""
    first, last = sorted((left, right))
    events = past.events(first, last)
    return {one.envelope.stream.partition(":")[2] for one in events}


async def diffs(
    past: GeneratedPast, left: int, right: int, limit: int, **about: str | None
) -> list[DiffView]:
    pages: list[DiffView] = []
    cursor: str | None = None
    while True:
        answer = await get_diff(
            past.services,
            EVERYTHING,
            GetDiff(left=f"pos:{left}", right=f"pos:{right}", limit=limit, cursor=cursor, **about),
        )
        assert answer.position == max(left, right)
        pages.append(answer.view)
        cursor = answer.view.next_cursor
        if cursor is None:
            return pages


def patched(before: Mapping[str, Any], pages: list[DiffView]) -> dict[str, Any]:
    """What the pages make of the left, each item once."""
    after, met = dict(before), set[str]()
    for page in pages:
        for item in (*page.added, *page.removed, *page.changed):
            assert item.id not in met
            met.add(item.id)
            made = apply_patch(item.patch, after.pop(item.id, None))
            if made is not None:
                after[item.id] = made
    return after


def is_made(past: GeneratedPast, pages: list[DiffView], ends: tuple[int, int], **of: Any) -> bool:
    """Whether the pages make what was so on the left into what was so on the right; who has no
    event in between is not spoken of."""
    ids = touched(past, *ends)
    left, right = (documents(past, past.pasts[one], ids, of.get("tree")) for one in ends)
    made = patched(left, pages)
    assert made.keys() == right.keys()
    spoken = [item for page in pages for item in (*page.added, *page.removed, *page.changed)]
    assert {one.id for one in spoken} <= left.keys() | right.keys()
    assert sum(page.counts.unchanged for page in pages) + len(spoken) == len(
        left.keys() | right.keys()
    )
    return all(is_same(made[name], document) for name, document in right.items())


async def test_each_diff_of_the_registry_applied_to_the_left_gives_the_right(
    past: GeneratedPast,
) -> None:
    die = random.Random(past.last)
    for number in range(PAIRS):
        left = die.randint(0, past.last)
        width = die.choice((past.last, 30, 5))
        right = min(max(left + die.randint(-width, width), 0), past.last)
        pages = await diffs(past, left, right, die.choice((3, 20, 500)))
        assert is_made(past, pages, (left, right)), (number, left, right)


async def test_the_event_of_every_position_is_the_diff_to_the_position_before(
    past: GeneratedPast,
) -> None:
    for now in past.some:
        ends = (now.position - 1, now.position)
        pages = await diffs(past, *ends, 10)
        assert is_made(past, pages, ends), ends
        back = await diffs(past, *ends[::-1], 10)
        assert is_made(past, back, (ends[1], ends[0])), ends


async def test_each_diff_of_a_tree_applied_to_the_left_gives_the_right(
    past: GeneratedPast,
) -> None:
    die = random.Random(past.last + 1)
    roots = sorted({one.root_session_key for one in past.pasts[-1].sessions.values()})
    for root in roots:
        ends = die.randint(0, past.last), die.randint(0, past.last)
        pages = await diffs(past, *ends, die.choice((2, 500)), tree=root)
        left, right = (past.pasts[one] for one in ends)
        first, last = sorted(ends)
        # A session stands in its own tree, also when an event of another one's touched it.
        own = {
            one.envelope.stream.partition(":")[2]
            for one in past.events(first, last)
            if one.envelope.provenance.correlation == root
        }
        made = patched(documents(past, left, own, root), pages)
        expected = documents(past, right, own, root)
        assert made.keys() == expected.keys()
        assert all(is_same(made[name], one) for name, one in expected.items()), (root, ends)


async def test_each_diff_of_a_run_applied_to_the_left_gives_the_right(past: GeneratedPast) -> None:
    die = random.Random(past.last + 2)
    for run in past.pasts[-1].by_creation:
        # Before it was asked for there was nothing to ask about.
        right = die.randint(run.created_position, past.last)
        for left in (die.randint(0, past.last), die.randint(run.created_position, right)):
            (page,) = await diffs(past, left, right, 10, run_id=str(run.run_id))
            before, after = (
                {str(run.run_id): state_of(past, now, one)}
                if (one := now.runs.get(run.run_id)) is not None
                else {}
                for now in (past.pasts[left], past.pasts[right])
            )
            made = patched(before, [page])
            assert made.keys() == after.keys()
            assert all(is_same(made[name], one) for name, one in after.items())


def states_of(past: GeneratedPast, run_id: UUID, until: int) -> list[tuple[Past, dict[str, Any]]]:
    """The states of a run after each of its own events."""
    return [
        (now, state_of(past, now, now.runs[run_id]))
        for now in past.pasts[1 : until + 1]
        if now.head.envelope.stream == run_stream(run_id)
    ]


async def history(past: GeneratedPast, run_id: UUID, at: int, *fields: str) -> RunHistoryView:
    answer = await get_run_history(
        past.services,
        EVERYTHING,
        str(run_id),
        GetRunHistory(at=f"pos:{at}", limit=500, fields_changed=fields),
    )
    return answer.view


async def test_the_patches_of_a_history_give_each_state_of_the_run(past: GeneratedPast) -> None:
    die = random.Random(past.last + 3)
    for run in past.pasts[-1].by_creation:
        at = die.choice((past.last, die.randint(run.created_position, past.last)))
        told = await history(past, run.run_id, at)
        states = states_of(past, run.run_id, at)
        assert told.version == len(states)
        document: Any = {}
        for one, (now, state) in zip(told.items, states, strict=True):
            envelope = now.head.envelope
            assert (one.position, one.type) == (envelope.position, envelope.type)
            assert (one.recorded_at, one.version) == (envelope.recorded_at, envelope.version)
            document = apply_patch(one.changes, document)
            assert is_same(document, state)


async def test_who_set_a_field_is_what_a_search_through_all_states_finds(
    past: GeneratedPast,
) -> None:
    die = random.Random(past.last + 4)
    for run in past.pasts[-1].by_creation:
        at = die.choice((past.last, die.randint(run.created_position, past.last)))
        told = await history(past, run.run_id, at)
        states = states_of(past, run.run_id, at)
        name_of_one = die.choice(list(states[0][1]))
        changes: dict[str, list[int]] = {}
        for name in states[0][1]:
            before: Any = None
            for number, (now, state) in enumerate(states):
                if number == 0 or not is_same(state[name], before):
                    changes.setdefault(name, []).append(now.position)
                before = state[name]
        assert {name: one.position for name, one in told.set_by.items()} == {
            name: positions[-1] for name, positions in changes.items()
        }
        for name, one in told.set_by.items():
            envelope = past.pasts[changes[name][-1]].head.envelope
            assert (one.version, one.type) == (envelope.version, envelope.type)
        only = await history(past, run.run_id, at, name_of_one)
        assert [one.position for one in only.items] == changes[name_of_one]
        assert only.set_by.keys() == {name_of_one}
