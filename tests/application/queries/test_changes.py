"""History and diff, compared with the folds of all positions.

The patches of a history give each state, each diff applied to the left state gives the right one,
and the event that set a field is the one that a search through all states finds.
"""

import random
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from uuid import UUID

import pytest

from application.queries.access import Caller
from application.queries.changes import diff as diff_module
from application.queries.changes.diff import DiffView, GetDiff, get_diff
from application.queries.changes.history import GetRunHistory, RunHistoryView, get_run_history
from application.queries.changes.json_patch import apply_patch, is_same
from application.queries.errors import QueryError
from application.queries.operation import ReadAsOf
from application.queries.services import QueryServices
from application.queries.sessions import get_session
from application.queries.views.run import RunMetadataView, RunView
from application.queries.views.session import session_record_view
from domain.run.state import Run
from domain.values.record import run_stream
from tests.support.builders.generated_pasts import SEEDS, GeneratedPast, Past, json_of, run_of
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.query_services import caller
from tests.support.builders.reads_of_the_past import EVERYTHING
from tests.support.builders.storytelling import ROOT
from tests.support.servers.running_log import RunningLog
from tests.support.tiers import nightly_but

of_histories = pytest.mark.parametrize(
    "past", nightly_but([*SEEDS, "everything"], [SEEDS[-1], "everything"]), indirect=True
)
PAIRS = 12


class Reader(NamedTuple):
    """A caller, and the form in which it reads a run."""

    caller: Caller
    form: type[RunView | RunMetadataView]


FULL = Reader(EVERYTHING, RunView)
READERS = (FULL, Reader(caller("read"), RunMetadataView))


def state_of(past: GeneratedPast, now: Past, run: Run, reader: Reader = FULL) -> dict[str, Any]:
    """Return a run without the members that come from other runs."""
    document = run_of(past, now, run, reader.form)
    document.pop("respawns", None)
    return document


def documents(
    past: GeneratedPast, now: Past, ids: set[str], tree: str | None, reader: Reader
) -> dict[str, Any]:
    """Return the runs and sessions of these ids that were there, in a tree or in all."""
    runs = {
        str(run.run_id): state_of(past, now, run, reader)
        for run in now.runs.values()
        if str(run.run_id) in ids and tree in (None, run.requester.root_session_key)
    }
    sessions = {
        key: json_of(session_record_view(session))
        for key, session in now.sessions.items()
        if key in ids and tree in (None, session.root_session_key)
    }
    return {**runs, **sessions}


async def diffs(
    services: QueryServices, by: Caller, left: int, right: int, limit: int = 10, **about: Any
) -> list[DiffView]:
    pages: list[DiffView] = []
    cursor: str | None = None
    while not pages or cursor is not None:
        query = GetDiff(
            left=f"pos:{left}", right=f"pos:{right}", limit=limit, cursor=cursor, **about
        )
        answer = await get_diff(services, by, query)
        assert answer.position == max(left, right)
        assert (answer.view.from_position, answer.view.to_position) == (left, right)
        pages.append(answer.view)
        cursor = answer.view.next_cursor
    return pages


def patched(before: Mapping[str, Any], pages: list[DiffView]) -> dict[str, Any]:
    """Return the left state with the pages applied. Assert that each item is on one page, with the
    right kind of change.
    """
    after, met = dict(before), set[str]()
    for page in pages:
        assert page.counts.added == len(page.added)
        for verdict in ("added", "removed", "changed"):
            for item in getattr(page, verdict):
                assert item.id not in met
                met.add(item.id)
                assert (item.id in before) == (verdict != "added")
                made = apply_patch(item.patch, after.pop(item.id, None))
                assert (made is None) == (verdict == "removed")
                if made is not None:
                    after[item.id] = made
    return after


def require_same(made: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    assert made.keys() == expected.keys()
    assert [name for name, value in expected.items() if not is_same(made[name], value)] == []


async def require_diff(
    past: GeneratedPast, left: int, right: int, limit: int, reader: Reader, tree: str | None = None
) -> None:
    """Assert that the pages turn the left state into the right one, without items that have no
    event in between.
    """
    pages = await diffs(past.services, reader.caller, left, right, limit, tree=tree)
    first, last = sorted((left, right))
    # A session is in its own tree, also if an event of another tree touched it.
    ids = {
        event.envelope.stream.partition(":")[2]
        for event in past.events(first, last)
        if tree in (None, event.envelope.provenance.correlation)
    }
    before, after = (documents(past, past.pasts[at], ids, tree, reader) for at in (left, right))
    require_same(patched(before, pages), after)
    shown = [item.id for page in pages for item in (*page.added, *page.removed, *page.changed)]
    unchanged = sum(page.counts.unchanged for page in pages)
    assert {*shown} <= before.keys() | after.keys()
    assert unchanged + len(shown) == len(before.keys() | after.keys())


def readers_of(past: GeneratedPast, die: random.Random) -> Iterator[tuple[Run, Reader, int]]:
    """Yield each run with a reader and a moment."""
    for run in past.pasts[-1].by_creation:
        at = die.choice((past.last, die.randint(run.created_position, past.last)))
        yield run, die.choice(READERS), at


@of_histories
@pytest.mark.server
@pytest.mark.long
async def test_registry_diff_makes_left_into_right(
    past: GeneratedPast, monkeypatch: pytest.MonkeyPatch
) -> None:
    die = random.Random(past.last)
    for _ in range(PAIRS):
        left = die.randint(0, past.last)
        width = die.choice((past.last, 30, 5))
        right = min(max(left + die.randint(-width, width), 0), past.last)
        monkeypatch.setattr(diff_module, "EVENTS_EXAMINED_MAX", die.choice((3, 20, 5000)))
        monkeypatch.setattr(diff_module, "TEXT_BYTES_MAX", die.choice((1, 10**9)))
        await require_diff(past, left, right, die.choice((3, 20, 500)), die.choice(READERS))


@of_histories
@pytest.mark.server
@pytest.mark.long
async def test_tree_diff_makes_left_into_right(past: GeneratedPast) -> None:
    die = random.Random(past.last + 1)
    for root in sorted({session.root_session_key for session in past.pasts[-1].sessions.values()}):
        reader = Reader(caller("read", "content", session=root), RunView)
        for left in (0, die.randint(0, past.last)):
            right = die.randint(0, past.last)
            await require_diff(past, left, right, die.choice((2, 500)), reader, root)


@of_histories
@pytest.mark.server
@pytest.mark.long
async def test_run_diff_makes_left_into_right(past: GeneratedPast) -> None:
    die = random.Random(past.last + 2)
    for run, reader, right in readers_of(past, die):
        # The first position may precede the run's request, so that the state before is empty.
        for left in (die.randint(0, past.last), die.randint(run.created_position, right)):
            before, after = (
                {str(run.run_id): state_of(past, now, newer, reader)}
                if (newer := now.runs.get(run.run_id)) is not None
                else {}
                for now in (past.pasts[left], past.pasts[right])
            )
            pages = await diffs(past.services, reader.caller, left, right, run_id=str(run.run_id))
            require_same(patched(before, pages), after)


@of_histories
@pytest.mark.server
@pytest.mark.long
async def test_session_diff_makes_left_into_right(past: GeneratedPast) -> None:
    async def session_at(key: str, at: int) -> dict[str, Any]:
        if key not in past.pasts[at].sessions:
            return {}
        found = await get_session(past.services, EVERYTHING, key, ReadAsOf(at=f"pos:{at}"))
        return {key: json_of(found.view)}

    die = random.Random(past.last + 3)
    for key in list(past.pasts[-1].sessions)[::7]:
        left, right = die.randint(0, past.last), past.last
        for ends in ((left, right), (right, left), (right, right)):
            pages = await diffs(past.services, EVERYTHING, *ends, session=key)
            made = patched(await session_at(key, ends[0]), pages)
            assert made == await session_at(key, ends[1])


def states_of(
    past: GeneratedPast, run_id: UUID, until: int, reader: Reader
) -> list[tuple[Past, dict[str, Any]]]:
    """Return the states of a run after each of its own events."""
    return [
        (now, state_of(past, now, now.runs[run_id], reader))
        for now in past.pasts[1 : until + 1]
        if now.head.envelope.stream == run_stream(run_id)
    ]


async def history(
    services: QueryServices, by: Caller, run_id: UUID, *fields: str, **more: Any
) -> RunHistoryView:
    query = GetRunHistory(limit=500, fields_changed=fields, **more)
    return (await get_run_history(services, by, str(run_id), query)).view


@of_histories
@pytest.mark.server
@pytest.mark.long
async def test_history_patches_give_each_state(past: GeneratedPast) -> None:
    for run, reader, at in readers_of(past, random.Random(past.last + 4)):
        found = await history(past.services, reader.caller, run.run_id, at=f"pos:{at}")
        states = states_of(past, run.run_id, at, reader)
        assert found.version == len(states)
        document: Any = {}
        for item, (now, state) in zip(found.items, states, strict=True):
            envelope = now.head.envelope
            assert (item.position, item.type) == (envelope.position, envelope.type)
            assert (item.recorded_at, item.version) == (envelope.recorded_at, envelope.version)
            document = apply_patch(item.changes, document)
            assert is_same(document, state)


@pytest.mark.server
@pytest.mark.long
async def test_field_is_set_by_its_last_change(past: GeneratedPast) -> None:
    die = random.Random(past.last + 5)
    for run, reader, at in readers_of(past, die):
        states = states_of(past, run.run_id, at, reader)
        changes: dict[str, list[int]] = {}
        before: dict[str, Any] = {}
        for now, state in states:
            for name, value in state.items():
                if not before or not is_same(value, before[name]):
                    changes.setdefault(name, []).append(now.position)
            before = state
        found = await history(past.services, reader.caller, run.run_id, at=f"pos:{at}")
        set_by = {
            name: (value.position, value.version, value.type)
            for name, value in found.set_by.items()
        }
        last = {name: past.pasts[at[-1]].head.envelope for name, at in changes.items()}
        assert set_by == {
            name: (event.position, event.version, event.type) for name, event in last.items()
        }
        name = die.choice(list(before))
        only = await history(past.services, reader.caller, run.run_id, name, at=f"pos:{at}")
        assert [item.position for item in only.items] == changes[name]
        assert only.set_by.keys() == {name}


@pytest.fixture
async def family(running: RunningLog) -> LoggedFamily:
    family = LoggedFamily(running.log)
    await family.live("reviewer")
    await family.begin("second")
    return family


async def test_history_has_pages_and_single_fields(
    services: QueryServices, family: LoggedFamily
) -> None:
    run_id, reader = family.id("reviewer"), caller("read")
    whole = await history(services, reader, run_id)
    found: list[Any] = []
    after: int | None = 0
    while after is not None:
        query = GetRunHistory(after=after, limit=2)
        page = (await get_run_history(services, reader, str(run_id), query)).view
        assert len(page.items) <= 2
        assert page.set_by == whole.set_by
        found += page.items
        after = page.next_after
    assert found == whole.items
    state = await history(services, reader, run_id, "/announcement/state", "stage")
    assert {name: value.type for name, value in state.set_by.items()} == {
        "stage": "RunArchived",
        "/announcement/state": "RunAnnounced",
    }


@pytest.mark.parametrize("scopes", [("read",), ("read", "content")])
async def test_history_of_unknown_field_is_refused(
    services: QueryServices, family: LoggedFamily, scopes: Any
) -> None:
    for fields, words in (
        (("nothing", "/nothing", "/~2"), "must be a field of a run"),
        (("respawns", "/respawns/0"), "list runs by respawnedFrom to find them"),
    ):
        for field in fields:
            with pytest.raises(QueryError, match=words) as refused:
                await history(services, caller(*scopes), family.id("reviewer"), field)
            assert "respawns," not in str(refused.value)


async def test_setter_of_erased_text_is_known(
    services: QueryServices, running: RunningLog, family: LoggedFamily
) -> None:
    run_id = family.id("reviewer")
    for table in ("contents", "content_keys"):
        await running.ask(f"DELETE FROM {table}")
    found = await history(services, EVERYTHING, run_id)
    assert found.set_by["resultText"].type == "RunEnded"
    last = next(item for item in found.items if item.type == "RunEnded")
    assert {"op": "replace", "path": "/resultText", "value": None} in last.changes
    (whole,) = await diffs(services, EVERYTHING, 0, await running.log.head(), 500)
    assert all(b"\\u0000" not in view.json_bytes() for view in (found, whole))
    added = next(item for item in whole.added if item.id == str(run_id))
    assert added.patch[0]["value"]["resultText"] is None


async def test_caller_of_one_tree_sees_no_other(
    services: QueryServices, running: RunningLog, family: LoggedFamily
) -> None:
    head, run_id, sibling = await running.log.head(), family.id("reviewer"), family.id("second")
    stranger = caller("read", session="agent:main:stranger")
    refusals: list[tuple[dict[str, Any], str]] = [
        ({}, "all sessions"),
        ({"run_id": str(run_id)}, "run not found"),
        ({"session": ROOT}, "there is no"),
        ({"tree": ROOT}, "there is no"),
        ({"run_id": str(run_id), "tree": ROOT}, "at most one"),
    ]
    for about, words in refusals:
        with pytest.raises(QueryError, match=words):
            await diffs(services, stranger, 0, head, **about)
    with pytest.raises(QueryError, match="run not found"):
        await history(services, stranger, run_id)
    child = caller("read", "content", session=family.key("reviewer"), run_id=run_id)
    for shown, has_task in ((run_id, True), (sibling, False)):
        (page,) = await diffs(services, child, 0, head, run_id=str(shown))
        assert ("task" in page.added[0].patch[0]["value"]) == has_task
    with pytest.raises(QueryError, match=f'there is no session "{ROOT}"'):
        await diffs(services, child, 0, head, tree=ROOT)
