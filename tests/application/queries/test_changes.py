"""History and diff against what the states themselves say, over generated histories.

A history's patches in order give each state, "who set this field" is what a search by brute force
finds, and each diff applied to the left gives the right.
"""

import random
from itertools import product
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
import pytest

from application.log.envelope import Actor
from application.queries.access import AccessScope, Caller
from application.queries.changes import diff as diff_module
from application.queries.changes.diff import DiffView, GetDiff, get_diff
from application.queries.changes.history import GetRunHistory, RunHistoryView, get_run_history
from application.queries.changes.json_patch import apply_patch, is_same
from application.queries.errors import QueryError
from application.queries.operation import ReadAsOf
from application.queries.runs import GetRun, get_run
from application.queries.services import QueryServices
from application.queries.sessions import get_session
from application.queries.views.session import session_record_view
from application.queries.views.view import View
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.query_services import query_services
from tests.support.builders.reads_of_the_past import NOW_ONLY
from tests.support.builders.storytelling import ROOT
from tests.support.builders.whole_story import tell_everything
from tests.support.models.random_family import live_at_random
from tests.support.servers.running_log import RunningLog
from tests.support.tiers import nightly_but, stride

ALL: tuple[AccessScope, ...] = ("read", "content")
STORIES = ("everything", "random")


def caller(*scopes: AccessScope, pattern: str = "*", run_id: UUID | None = None) -> Caller:
    actor = Actor("token", "reader")
    return Caller(actor=actor, scopes=frozenset(scopes), patterns=(pattern,), run_id=run_id)


STORIES_BY_SCOPES = nightly_but(
    product(STORIES, [ALL, ("read",)]), [("everything", ALL), ("everything", ("read",))]
)


@pytest.fixture
async def services(running: RunningLog, tmp_path: Path) -> QueryServices:
    return await query_services(running, tmp_path)


async def tell(running: RunningLog, story: str) -> None:
    if story == "everything":
        await tell_everything(running)
    else:
        await live_at_random(running, 3, rounds=30, at_once=5)
    refs: dict[str, dict[str, Any]] = {}
    for recorded in await running.events():
        _find_refs(recorded.event.members(), refs)
    assert refs
    for id, ref in refs.items():
        # Texts that are JSON too: some are where a view looks into them.
        text = f'{{"text": "{id}"}}'
        await running.ask(
            "INSERT INTO contents VALUES (%s, %s, 'text', %s, %s) ON CONFLICT DO NOTHING",
            *(id, id, ref["bytes"], text),
        )


def _find_refs(value: Any, refs: dict[str, dict[str, Any]]) -> None:
    if isinstance(value, dict):
        if value.keys() == {"id", "bytes", "hmac"}:
            refs[value["id"]] = value
        for one in value.values():
            _find_refs(one, refs)
    elif isinstance(value, list):
        for one in value:
            _find_refs(one, refs)


def state_of(view: View) -> dict[str, Any]:
    """Return a run as it is on record: without the runs made from it and, if it is at work, without
    the values that only an answer about now has."""
    state = {name: value for name, value in json_of(view).items() if name != "respawns"}
    if state["status"] == "running":
        state |= {name: empty for name, empty in NOW_ONLY.items() if name in state}
    return state


def json_of(view: View) -> Any:
    return orjson.loads(view.json_bytes())


async def run_ids(running: RunningLog) -> list[str]:
    rows = await running.ask("SELECT DISTINCT run_id::text FROM runs ORDER BY 1")
    return [row[0] for row in rows]


async def states_of(services: QueryServices, reader: Caller, run_id: str) -> list[Any]:
    """Each state of a run as `GET …?version=N` has it."""
    newest = state_of((await get_run(services, reader, run_id, GetRun())).view)
    states = [
        state_of((await get_run(services, reader, run_id, GetRun(version=version))).view)
        for version in range(1, newest["version"] + 1)
    ]
    assert states[-1] == newest
    return states


async def history(
    services: QueryServices, reader: Caller, run_id: str, **more: Any
) -> RunHistoryView:
    return (await get_run_history(services, reader, run_id, GetRunHistory(limit=500, **more))).view


@pytest.mark.server
@pytest.mark.parametrize(("story", "scopes"), STORIES_BY_SCOPES)
async def test_the_patches_of_a_history_give_each_state_of_the_run(
    services: QueryServices, running: RunningLog, story: str, scopes: tuple[AccessScope, ...]
) -> None:
    await tell(running, story)
    reader = caller(*scopes)
    for run_id in await run_ids(running):
        told = await history(services, reader, run_id)
        states = await states_of(services, reader, run_id)
        assert [one.version for one in told.items] == list(range(1, len(states) + 1))
        document: Any = {}
        for one, state in zip(told.items, states, strict=True):
            document = apply_patch(one.changes, document)
            assert is_same(document, state)


async def test_a_history_comes_in_pages_and_tells_of_single_fields(
    services: QueryServices, running: RunningLog
) -> None:
    family = LoggedFamily(running.log)
    await family.live("reviewer")
    run_id, reader = str(family.id("reviewer")), caller("read")
    whole = await history(services, reader, run_id)
    found: list[Any] = []
    after: int | None = 0
    while after is not None:
        answer = await get_run_history(
            services, reader, run_id, GetRunHistory(after=after, limit=2)
        )
        assert len(answer.view.items) <= 2
        assert answer.view.set_by == whole.set_by
        found += answer.view.items
        after = answer.view.next_after
    assert found == whole.items
    state = await history(services, reader, run_id, fields_changed=("/announcement/state", "stage"))
    assert set(state.set_by) == {"/announcement/state", "stage"}
    assert state.set_by["stage"].type == "RunArchived"
    assert state.set_by["/announcement/state"].type == "RunAnnounced"
    for wrong in ("nothing", "/nothing", "/~2"):
        with pytest.raises(QueryError, match="is a field of a run"):
            await history(services, reader, run_id, fields_changed=(wrong,))


async def test_who_set_respawns_is_refused_with_where_it_is_told(
    services: QueryServices, running: RunningLog
) -> None:
    family = LoggedFamily(running.log)
    await family.live("reviewer")
    run_id = str(family.id("reviewer"))
    for reader in (caller("read"), caller("read", "content")):
        for field in ("respawns", "/respawns/0"):
            with pytest.raises(QueryError, match="list runs by respawnedFrom to find them"):
                await history(services, reader, run_id, fields_changed=(field,))
        with pytest.raises(QueryError) as refused:
            await history(services, reader, run_id, fields_changed=("nothing",))
        assert "respawns," not in str(refused.value)


async def test_who_set_a_text_is_known_when_the_text_was_erased(
    services: QueryServices, running: RunningLog
) -> None:
    family = LoggedFamily(running.log)
    await family.live("reviewer")
    run_id, reader = str(family.id("reviewer")), caller(*ALL)
    await running.ask("DELETE FROM contents")
    await running.ask("DELETE FROM content_keys")
    told = await history(services, reader, run_id)
    assert told.set_by["resultText"].type == "RunEnded"
    last = next(one for one in told.items if one.type == "RunEnded")
    assert {"op": "replace", "path": "/resultText", "value": None} in last.changes
    assert b"\\u0000" not in told.json_bytes()
    head = await running.log.head()
    whole = await get_diff(services, reader, GetDiff(left="pos:0", right=f"pos:{head}"))
    assert b"\\u0000" not in whole.view.json_bytes()
    added = next(one for one in whole.view.added if one.id == run_id)
    assert added.patch[0]["value"]["resultText"] is None


# Diff.


async def documents_at(services: QueryServices, reader: Caller, at: int) -> dict[str, Any]:
    """All runs and sessions as of a position, one by one."""
    registry, found = services.work.registry, dict[str, Any]()
    for recorded in await services.work.log.read(limit=100_000, until=at):
        stream = recorded.envelope.stream
        kind, _, name = stream.partition(":")
        if kind == "run":
            found[name] = state_of(
                (await get_run(services, reader, name, GetRun(at=f"pos:{at}"))).view
            )
        elif kind == "session":
            session = await registry.session(name, at=at)
            assert session is not None
            found[name] = json_of(session_record_view(session))
    return found


async def diffs(
    services: QueryServices, reader: Caller, left: int, right: int, limit: int, **more: Any
) -> list[DiffView]:
    pages: list[DiffView] = []
    cursor: str | None = None
    while True:
        answer = await get_diff(
            services,
            reader,
            GetDiff(left=f"pos:{left}", right=f"pos:{right}", limit=limit, cursor=cursor, **more),
        )
        assert answer.position == max(left, right)
        assert (answer.view.from_position, answer.view.to_position) == (left, right)
        pages.append(answer.view)
        cursor = answer.view.next_cursor
        if cursor is None:
            return pages


def patched(before: dict[str, Any], pages: list[DiffView]) -> dict[str, Any]:
    """What the pages make of the left, each item once."""
    after, met = dict(before), set[str]()
    for page in pages:
        assert page.counts.added == len(page.added)
        for verdict, items in (
            ("added", page.added),
            ("removed", page.removed),
            ("changed", page.changed),
        ):
            for item in items:
                assert item.id not in met
                met.add(item.id)
                assert (item.id in before) == (verdict != "added")
                made = apply_patch(item.patch, before.get(item.id))
                assert (made is None) == (verdict == "removed")
                after.pop(item.id, None)
                if made is not None:
                    after[item.id] = made
    return after


@pytest.mark.server
@pytest.mark.parametrize(("story", "scopes"), STORIES_BY_SCOPES)
async def test_each_diff_applied_to_the_left_gives_the_right(
    services: QueryServices,
    running: RunningLog,
    story: str,
    scopes: tuple[AccessScope, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await tell(running, story)
    reader, head = caller(*scopes), await running.log.head()
    die = random.Random(head)
    for _ in range(5 // stride(2)):
        left, right = (die.randint(0, head) for _ in range(2))
        monkeypatch.setattr(diff_module, "EVENTS_EXAMINED_MAX", die.choice([3, 20, 5000]))
        monkeypatch.setattr(diff_module, "TEXT_BYTES_MAX", die.choice([1, 10**9]))
        before = await documents_at(services, reader, left)
        after = await documents_at(services, reader, right)
        pages = await diffs(services, reader, left, right, die.choice([1, 4, 500]))
        made = patched(before, pages)
        assert made.keys() == after.keys()
        for name, document in after.items():
            assert is_same(made[name], document), name


@pytest.mark.server
@pytest.mark.parametrize("story", nightly_but(STORIES, ["everything"]))
async def test_the_diff_of_a_tree_is_that_of_all_but_for_the_other_trees(
    services: QueryServices, running: RunningLog, story: str
) -> None:
    await tell(running, story)
    other = LoggedFamily(running.log, root="agent:main:other", first=500)
    await other.live("elsewhere")
    head, reader = await running.log.head(), caller("read")
    everything = await diffs(services, reader, 0, head, 500)
    roots = {
        one["key"]: one["root"]
        for one in [
            {"key": row[0], "root": row[1]}
            for row in await running.ask(
                "SELECT run_id::text, root FROM runs UNION SELECT session_key, root FROM sessions"
            )
        ]
    }
    for root in (ROOT, "agent:main:other"):
        pages = await diffs(services, caller("read", pattern=root), 0, head, 7, tree=root)
        found = {item.id for page in pages for item in page.added}
        assert found == {
            item.id for page in everything for item in page.added if roots[item.id] == root
        }


async def test_the_diff_of_a_run_and_of_a_session_is_that_of_their_views(
    services: QueryServices, running: RunningLog
) -> None:
    family = LoggedFamily(running.log)
    await family.live("reviewer")
    await family.begin("second")
    head, reader, run_id = await running.log.head(), caller(*ALL), str(family.id("reviewer"))
    born = (await history(services, reader, run_id)).items[0].position
    for left in range(1, head + 1, 3):
        for right in (left, head, 1):
            if max(left, right) < born:
                continue
            (page,) = await diffs(services, reader, left, right, 50, session=ROOT)
            made = patched(await _session_at(services, reader, left), [page])
            assert made == await _session_at(services, reader, right)
            (page,) = await diffs(services, reader, left, right, 50, run_id=run_id)
            made = patched(await _run_at(services, reader, run_id, left), [page])
            assert made == await _run_at(services, reader, run_id, right)


async def _session_at(services: QueryServices, reader: Caller, at: int) -> dict[str, Any]:
    try:
        view = (await get_session(services, reader, ROOT, ReadAsOf(at=f"pos:{at}"))).view
    except QueryError:
        return {}
    return {ROOT: json_of(view)}


async def _run_at(services: QueryServices, reader: Caller, run_id: str, at: int) -> dict[str, Any]:
    try:
        return {
            run_id: state_of((await get_run(services, reader, run_id, GetRun(at=f"pos:{at}"))).view)
        }
    except QueryError:
        return {}


async def test_who_may_see_one_tree_sees_no_other_and_not_all(
    services: QueryServices, running: RunningLog
) -> None:
    family = LoggedFamily(running.log)
    await family.begin("reviewer")
    await family.begin("second")
    head = f"pos:{await running.log.head()}"
    stranger = caller("read", pattern="agent:main:stranger")
    with pytest.raises(QueryError, match="pattern"):
        await get_diff(services, stranger, GetDiff(left="pos:0", right=head))
    run_id = str(family.id("reviewer"))
    ways: list[dict[str, Any]] = [{"run_id": run_id}, {"session": ROOT}, {"tree": ROOT}]
    for more in ways:
        with pytest.raises(QueryError, match="there is no"):
            await get_diff(services, stranger, GetDiff(left="pos:0", right=head, **more))
    with pytest.raises(QueryError, match="there is no such run"):
        await get_run_history(services, stranger, run_id, GetRunHistory())
    with pytest.raises(QueryError, match="use one"):
        await get_diff(
            services, stranger, GetDiff(left="pos:0", right=head, run_id=run_id, tree=ROOT)
        )
    child = caller(*ALL, pattern=family.key("reviewer"), run_id=family.id("reviewer"))
    sibling = str(family.id("second"))
    (item,) = (
        await get_diff(services, child, GetDiff(left="pos:0", right=head, run_id=sibling))
    ).view.added
    assert "task" not in item.patch[0]["value"], "of a sibling only a summary"
    own = (await get_diff(services, child, GetDiff(left="pos:0", right=head, run_id=run_id))).view
    assert "task" in own.added[0].patch[0]["value"]
    with pytest.raises(QueryError, match=f'there is no session "{ROOT}"'):
        await get_diff(services, child, GetDiff(left="pos:0", right=head, tree=ROOT))
