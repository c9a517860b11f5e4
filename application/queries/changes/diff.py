"""Computes the changes between two moments of a run, a session, a tree or the whole registry.

Only the events between the two are scanned, so the cost grows with their number and not with the
size of the log. A run or session without such an event is unchanged.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, cast
from uuid import UUID

import orjson
from pydantic import Field

from application.ports.registry import StatesAsOf
from application.ports.run_bars import ReachedStage
from application.queries.access import Caller
from application.queries.as_of import AsOf, resolve_as_of
from application.queries.changes.documents import (
    PatchOperation,
    StateDocument,
    inner_texts,
    references_in,
    run_document,
    texts_of,
    with_texts,
)
from application.queries.changes.json_patch import Operation, difference
from application.queries.command import Command, Option
from application.queries.errors import QueryError
from application.queries.operation import Page, Read, ReadAsOf, operation
from application.queries.paging import (
    Cursor,
    decode_cursor,
    encode_cursor,
    fingerprint,
)
from application.queries.run_filter import RUN_ID_CHARACTERS, TEXT_CHARACTERS_MAX
from application.queries.runs import visible_run
from application.queries.services import QueryServices
from application.queries.session_reference import resolve_root
from application.queries.sessions import get_session, visible_session
from application.queries.views.session import session_record_view
from application.queries.views.view import Answer, View
from domain.run.state import Run
from domain.values.moments import MOMENT_CHARACTERS_MAX, MOMENT_FORMS
from domain.values.record import CONFIG_STREAM, ContentRef, run_id_of, run_stream, session_key_of

EVENTS_EXAMINED_MAX = 5_000
"""Maximum number of events scanned for one page; it contains everything that they changed."""
TEXT_BYTES_MAX = 16 * 1024 * 1024
"""A page ends after the item whose texts exceed this total."""

DiffKind = Literal["run", "session"]
ChangeVerdict = Literal["added", "removed", "changed"]


class DiffItemView(View):
    """A run by its id, or a session by its key. `patch` (RFC 6902) transforms its left state into
    its right state; `null` is an absent one."""

    kind: DiffKind
    id: str
    label: str | None
    patch: list[PatchOperation]


class DiffCountsView(View):
    """The number of items on the page. `unchanged` items have events between the two moments but
    equal states."""

    added: int
    removed: int
    changed: int
    unchanged: int


class DiffView(View):
    """Changes from the left state, as of `fromPosition`, to the right state, as of `toPosition`, in
    the order of the first events between them. `nextCursor` is null on the last page. The
    configuration revisions are those in force at each position, null for none; their contents are
    not compared."""

    from_position: int
    to_position: int
    from_config_revision: int | None
    to_config_revision: int | None
    counts: DiffCountsView
    added: list[DiffItemView]
    removed: list[DiffItemView]
    changed: list[DiffItemView]
    next_cursor: str | None


class _Pair(NamedTuple):
    """The left and right state of a run or session; None where it does not exist."""

    kind: DiffKind
    id: str
    label: str | None
    position: int
    left: StateDocument | None
    right: StateDocument | None


@dataclass(slots=True)
class _Page:
    """Items found so far. `after_cursor` is where the next page begins, None at the end."""

    items: dict[ChangeVerdict, list[DiffItemView]] = field(
        default_factory=lambda: {"added": [], "removed": [], "changed": []}
    )
    unchanged: int = 0
    after_cursor: int | None = None


class GetDiff(Page, Read):
    """Parameters of `get_diff`."""

    left: str = Field(
        alias="from",
        max_length=MOMENT_CHARACTERS_MAX,
        description=f"Left side of the comparison: {MOMENT_FORMS}.",
        examples=["pos:18000"],
    )
    right: str = Field(
        alias="to",
        max_length=MOMENT_CHARACTERS_MAX,
        description=(
            "Right side of the comparison, in the same forms; it may be the earlier moment."
        ),
        examples=["pos:18342"],
    )
    run_id: str | None = Field(None, max_length=RUN_ID_CHARACTERS, description="Only this run.")
    session: str | None = Field(
        None,
        max_length=TEXT_CHARACTERS_MAX,
        description=(
            "Only this session, as `GET /v1/sessions/{key}` shows it: a session key, a"
            " session id, or `current`."
        ),
    )
    tree: str | None = Field(
        None,
        max_length=TEXT_CHARACTERS_MAX,
        description="Only this root session and the runs and sessions below it.",
    )


@operation(
    "GET",
    "/v1/diff",
    name="getDiff",
    tag="log",
    scope="read",
    summary="Show what changed between two moments",
    description=(
        "Returns the changes of a run, a session, a tree or, for a token with the pattern `*`,"
        " the whole registry: items that were added, removed or changed, each with a patch (RFC"
        " 6902) from left to right, in which `null` is an absent item. Items are ordered"
        " by their first event between the two moments. Each request scans a bounded number of"
        " events, so a page may be short or empty: the diff is complete only when `nextCursor` is"
        " null; `counts` are those of the page. In the diff of a tree or of the registry, a"
        " session has only the fields that follow from its own events; with `session`, it has all"
        " that `GET /v1/sessions/{key}` shows."
    ),
    errors=("not_found", "foreign_cursor"),
    command=Command(
        "diff",
        by_hand=True,
        arguments=("from", "to"),
        options={
            "from": Option(metavar="FROM", help=f"Left side: {MOMENT_FORMS}."),
            "to": Option(metavar="TO", help="Right side, in the same forms as FROM."),
            "session": Option(metavar="KEY", help="Only this session, as `session get` shows it."),
        },
        limit=1_000,
    ),
)
async def get_diff(services: QueryServices, caller: Caller, query: GetDiff) -> Answer[DiffView]:
    """Return the changes from `left` to `right`; either may be the later moment.

    They are those of one run, one session, the tree below a root session, or, if the caller sees
    everything, of all.
    """
    left, right, cursor = query.left, query.right, query.cursor
    run_id, session, tree = query.run_id, query.session, query.tree
    if sum(value is not None for value in (run_id, session, tree)) > 1:
        raise QueryError("invalid_request", "name at most one run, session or tree")
    question = ("diff", left, right, run_id, session, tree, caller.patterns)
    after_cursor: int | None = None
    if cursor is None:
        sides = await asyncio.gather(
            resolve_as_of(services, caller, left, pointer="/query/from"),
            resolve_as_of(services, caller, right, pointer="/query/to"),
        )
        span = _Span(*(side.position for side in sides))
    else:
        span, after_cursor = await _place_of(services, cursor, question)
    later = AsOf(span.last, now=False)
    if run_id is not None:
        run = await visible_run(services, caller, run_id, later)
        covered = await services.access.covers_run(caller, run)
        is_full = caller.may("content") and covered
        pairs = await _pairs(services, [_Touched(run_stream(run.run_id), 0)], span, is_full)
        page = await _page_of(services, pairs, is_full=is_full)
    elif session is not None:
        found = await visible_session(services, caller, session, later, pointer="/query/session")
        key = found.session_key
        page = await _page_of(services, [await _session_pair(services, caller, key, span)])
    else:
        root = await _root(services, caller, tree, later)
        page = await _registry_page(
            services,
            span,
            root,
            after_cursor=after_cursor,
            limit=query.limit,
            is_full=caller.may("content"),
        )
    log = services.work.log
    revisions = await asyncio.gather(
        *(log.version_of(CONFIG_STREAM, at=position) for position in span)
    )
    view = DiffView(
        from_position=span.left,
        to_position=span.right,
        from_config_revision=revisions[0] or None,
        to_config_revision=revisions[1] or None,
        counts=DiffCountsView(
            **{verdict: len(those) for verdict, those in page.items.items()},
            unchanged=page.unchanged,
        ),
        **page.items,
        next_cursor=(
            _cursor(services, span, page.after_cursor, question)
            if page.after_cursor is not None
            else None
        ),
    )
    return Answer(view, span.last)


class _Span(NamedTuple):
    """The positions of the left and right side."""

    left: int
    right: int

    @property
    def first(self) -> int:
        """Return the earlier position."""
        return min(self)

    @property
    def last(self) -> int:
        """Return the later position."""
        return max(self)


class _Touched(NamedTuple):
    stream: str
    position: int


def _cursor(
    services: QueryServices, span: _Span, after_cursor: int, question: tuple[object, ...]
) -> str:
    """Return the cursor of a page, prefixed with the left position, which its fingerprint
    includes."""
    text = fingerprint(span.left, *question)
    right = encode_cursor(Cursor(span.right, after_cursor), services.work.log.log_id, text)
    return f"{span.left}.{right}"


async def _place_of(
    services: QueryServices, cursor: str, question: tuple[object, ...]
) -> tuple[_Span, int]:
    """Return the two positions of a cursor, and the position after which its page begins."""
    head = await services.work.log.head()
    match = re.fullmatch(r"([0-9]{1,18})\.(.*)", cursor, re.DOTALL)
    if match is None:
        raise QueryError("invalid_request", "this is not a cursor; start again without it")
    left = int(match[1])
    text = fingerprint(left, *question)
    place = decode_cursor(match[2], services.work.log.log_id, text, head)
    return _Span(min(left, head), place.at), place.after


async def _root(services: QueryServices, caller: Caller, tree: str | None, at: AsOf) -> str | None:
    """Return the root session of the tree, which the caller must cover; None for all trees."""
    if tree is None:
        if not caller.sees_everything:
            raise QueryError(
                "not_permitted",
                "the whole registry requires a token for all sessions (*); name a run, a session"
                " or a tree",
            )
        return None
    return await resolve_root(services, caller, tree, at=at.position, is_required=True)


async def _registry_page(
    services: QueryServices,
    span: _Span,
    tree: str | None,
    *,
    after_cursor: int | None,
    limit: int,
    is_full: bool,
) -> _Page:
    changed = await services.work.registry.changed_streams(
        after=span.first,
        until=span.last,
        after_cursor=max(span.first, after_cursor or 0),
        events_max=EVENTS_EXAMINED_MAX,
        tree=tree,
    )
    touched = [_Touched(*pair) for pair in changed.streams]
    # Other streams, such as the configuration, are neither runs nor sessions.
    touched = [
        change for change in touched if run_id_of(change.stream) or session_key_of(change.stream)
    ]
    end = changed.examined
    if len(touched) > limit:
        del touched[limit:]
        end = touched[-1].position
    pairs = await _pairs(services, touched, span, is_full)
    page = await _page_of(services, pairs, is_full=is_full)
    if page.after_cursor is None and end < span.last:
        page.after_cursor = end
    return page


async def _pairs(
    services: QueryServices, touched: Sequence[_Touched], span: _Span, is_full: bool
) -> list[_Pair]:
    """Return the states on both sides as documents, with references in place of texts."""
    registry, contents = services.work.registry, services.work.contents
    run_ids = [id for change in touched if (id := run_id_of(change.stream)) is not None]
    keys = [key for change in touched if (key := session_key_of(change.stream)) is not None]
    left, right = sides = await registry.states(run_ids, keys, at=span)
    runs = [*left.runs.values(), *right.runs.values()]
    inner, stages = await asyncio.gather(
        contents.texts([ref for run in runs for ref in inner_texts(run)] * is_full),
        _stages(services, sides, span),
    )

    async def document(run: Run | None, number: int) -> StateDocument | None:
        if run is None:
            return None
        return run_document(run, inner, stages[number][run.run_id], is_full=is_full)

    pairs: list[_Pair] = []
    for stream, position in touched:
        run_id, key = run_id_of(stream), session_key_of(stream)
        if run_id is not None:
            known = right.runs.get(run_id) or left.runs.get(run_id)
            label = known.label if known is not None else None
            documents = [
                await document(side.runs.get(run_id), number) for number, side in enumerate(sides)
            ]
            pairs.append(_Pair("run", str(run_id), label, position, *documents))
        elif key is not None:
            sessions = [side.sessions.get(key) for side in (left, right)]
            label = next(
                (side.display_key for side in sessions if side is not None),
                None,
            )
            documents = [
                _json(session_record_view(side)) if side is not None else None for side in sessions
            ]
            pairs.append(_Pair("session", key, label, position, *documents))
    return pairs


async def _stages(
    services: QueryServices, sides: Sequence[StatesAsOf], span: _Span
) -> list[dict[UUID, list[ReachedStage]]]:
    """Return the stages that each run had reached on either side."""
    versions: dict[UUID, int] = {}
    for side in sides:
        for run in side.runs.values():
            versions[run.run_id] = max(run.version, versions.get(run.run_id, 0))
    reached = await services.run_bars.stages(versions)
    return [
        {
            run_id: [stage for stage in those if stage.position <= at]
            for run_id, those in reached.items()
        }
        for at in span
    ]


async def _session_pair(services: QueryServices, caller: Caller, key: str, span: _Span) -> _Pair:
    """Return both states of a session as its view shows them."""
    sides: list[StateDocument | None] = []
    label: str | None = None
    for position in span:
        try:
            view = (await get_session(services, caller, key, ReadAsOf(at=f"pos:{position}"))).view
        except QueryError as error:
            if error.code != "not_found":
                raise
            sides.append(None)
        else:
            label = view.display_key
            sides.append(_json(view))
    return _Pair("session", key, label, span.last, *sides)


def _json(view: View) -> StateDocument:
    return cast("StateDocument", orjson.loads(view.json_bytes()))


async def _page_of(
    services: QueryServices, pairs: Sequence[_Pair], *, is_full: bool = True
) -> _Page:
    """Return the differences, as many as the limit of text bytes permits."""
    page = _Page()
    found: list[tuple[_Pair, bool, list[Operation]]] = []
    refs: list[ContentRef] = []
    text_bytes = last = 0
    for pair in pairs:
        operations = difference(pair.left, pair.right)
        if not operations:
            page.unchanged += 1
            last = pair.position
            continue
        own = references_in(operations)
        text_bytes += sum(ref.bytes for ref in own)
        if is_full and found and text_bytes > TEXT_BYTES_MAX:
            page.after_cursor = last
            break
        found.append((pair, bool(own), operations))
        refs += own
        last = pair.position
    texts: Mapping[UUID, str] = await texts_of(refs, services.work.contents, is_full=is_full)
    for pair, has_texts, operations in found:
        patch: list[Any] = with_texts(operations, texts) if has_texts else operations
        page.items[_verdict(pair)].append(DiffItemView.from_source(pair, patch=patch))
    return page


def _verdict(pair: _Pair) -> ChangeVerdict:
    if pair.left is None:
        return "added"
    return "removed" if pair.right is None else "changed"
