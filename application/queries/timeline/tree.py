"""The tree below a session, now or as of an earlier moment."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, TypeVar
from uuid import UUID

from pydantic import Field

from application.ports.registry import RunCondition, RunQuery
from application.ports.run_bars import ReachedStage, RunBar, RunDetails, SessionBar
from application.queries.access import Caller
from application.queries.as_of import AsOf, resolve_as_of
from application.queries.command import Command, Option
from application.queries.operation import ReadAsOf, operation
from application.queries.paging import Cursor
from application.queries.runs import running_so_far
from application.queries.search.run_totals import UsageSum, details_with_usage
from application.queries.services import QueryServices
from application.queries.sessions import visible_session
from application.queries.views.run import RunMetadataView, RunView, text_of, view_of_bar
from application.queries.views.run_totals import UsageTotalsView
from application.queries.views.view import Answer, View, selection
from domain.run.state import Run
from domain.session.state import Session

R = TypeVar("R", bound=RunView)
NODES_MAX = 2_000
NODES_DEFAULT = 500
LEVELS_MAX = 64
"""No session is further below another than this."""


@selection(
    "run_id", "stage", "status", "outcome", "agent_id", "label", "respawned_from", "created_at",
    "stages", "task_preview", "error", "input_tokens", "output_tokens", "estimated_cost_usd",
)  # fmt: skip
class TreeRunView(RunMetadataView):
    """A run in a tree. `respawnedFrom` is the run that it was respawned from, in any tree. `error`
    is a preview of why it failed. A running run has the tokens and cost that it had used by then,
    or null if they are unknown."""

    input_tokens: int | None
    output_tokens: int | None


@selection(
    *(name for name in TreeRunView.model_fields if not name.endswith(("_tokens", "_usd"))),
    "rule",
    "child_session_key",
)
class RefusedRunView(RunMetadataView):
    """A run that was refused, and the rule that refused it. `childSessionKey` is the session that a
    refused message was sent to; for most spawns it is null. `error` is a preview of the refusal."""


class TreeNodeView(View):
    """A session with its own runs in order of creation, and the sessions below it. `sessionKey` is
    null for a spawn that is being prepared and has no session yet. `own` sums its runs, and
    `total` those runs and all in the nodes below it that the answer has. If `childrenCut`, there
    may be more children than those in `children`: request the tree of this session. `refused` are
    the refused runs that this session requested, in order of creation: spawns, and messages to its
    children. If `refusedCut`, there may be more: list runs to see them."""

    session_key: str | None
    session_id: UUID | None
    agent_id: str | None
    depth: int
    role: str | None
    open: bool
    created_at: datetime
    active_children: int
    own: UsageTotalsView
    total: UsageTotalsView
    runs: list[TreeRunView]
    children: "list[TreeNodeView]"
    children_cut: bool
    refused: list[RefusedRunView]
    refused_cut: bool


class SessionTreeView(View):
    """A session and its descendants. `nodes` counts sessions and spawns being prepared, and
    `runningNotSummed` the running runs whose tokens and cost are not known (as in totals of runs,
    of the whole tree). If `cut`, nodes are missing; `childrenCut` marks the nodes above them.
    `position` is where the answer is true; `at` is the requested instant, or the time when that
    position was recorded."""

    position: int
    at: datetime | None
    nodes: int
    running_not_summed: int
    cut: bool
    root: TreeNodeView


@dataclass(slots=True)
class _Node:
    """A session, or a spawn that has none yet."""

    session_key: str | None
    created_at: datetime
    agent_id: str | None
    depth: int
    runs: list[RunBar] = field(default_factory=list)
    children: "list[_Node]" = field(default_factory=list)
    children_cut: bool = False
    refused: list[RunBar] = field(default_factory=list)
    refused_cut: bool = False


class GetSessionTree(ReadAsOf):
    """Parameters of `get_session_tree`."""

    limit: int = Field(NODES_DEFAULT, ge=1, le=NODES_MAX, description="Maximum number of nodes.")
    depth: int = Field(
        LEVELS_MAX, ge=0, le=LEVELS_MAX, description="Maximum number of levels below the session."
    )


@operation(
    "GET",
    "/v1/sessions/{key}/tree",
    name="getSessionTree",
    tag="sessions",
    scope="read",
    summary="Show a session and everything below it",
    description=(
        "Returns the session with its own runs and, below it, the sessions that it spawned, each"
        " with its runs, the position and instant of every stage, the tokens and cost of its runs"
        " (`own`) and of those and all below it (`total`), and the number of places that it"
        " occupies. The tree is filled level by level, up to `limit` nodes. `cut` says that nodes"
        " are missing; `childrenCut` of a node that they are below it, and its own tree has them."
        " `refused` of a node are the refused spawns that it requested, each with its `rule`, up"
        " to `limit` in the whole tree. `refusedCut` says that there are more: list runs to see"
        " them."
    ),
    errors=("not_found",),
    command=Command(
        "session tree",
        by_hand=True,
        options={
            "limit": Option(
                help="Maximum number of sessions.", default=NODES_DEFAULT, maximum=NODES_MAX
            ),
            "depth": Option(help="Maximum number of levels below it.", default=LEVELS_MAX),
        },
    ),
)
async def get_session_tree(
    services: QueryServices, caller: Caller, key: str, query: GetSessionTree
) -> Answer[SessionTreeView]:
    """Return the tree below a session, level by level, so that the deepest nodes are cut first."""
    limit = query.limit
    moment = await resolve_as_of(services, caller, query.at)
    session = await visible_session(services, caller, key, moment)
    root = _Node(session.session_key, session.created_at, session.agent_id, session.depth)
    nodes = await _grow(services, root, at=moment.position, limit=limit, levels=query.depth)
    keys = [node.session_key for node in nodes if node.session_key is not None]
    sessions, own, _ = await asyncio.gather(
        services.run_bars.sessions(keys, at=moment.position),
        _own_runs(services, session, at=moment.position),
        _add_refused(services, nodes, at=moment.position, limit=limit),
    )
    root.runs = list(own)
    bars = [bar for node in nodes for bar in (*node.runs, *node.refused)]
    stages, details = await asyncio.gather(
        services.run_bars.stages({bar.run_id: bar.version for bar in bars}),
        services.run_bars.details(bars),
    )
    texts = await services.work.contents.previews(
        ref for found in details.values() for ref in (found.task, found.error) if ref is not None
    )
    running = await _running_so_far(services, caller, session, moment)
    details = {
        run_id: details_with_usage(found, running[run_id].usage) if run_id in running else found
        for run_id, found in details.items()
    }
    runs = _RunViews(stages, details, texts)
    instant = moment.instant or await services.work.log.recorded_at(moment.position)
    view = SessionTreeView(
        position=moment.position,
        at=instant,
        nodes=len(nodes),
        running_not_summed=sum(
            bar.stage == "started" and bar.run_id not in running for bar in bars
        ),
        cut=any(node.children_cut for node in nodes),
        root=_node_view(root, sessions, runs)[0],
    )
    return Answer(view, moment.position)


async def _running_so_far(
    services: QueryServices, caller: Caller, session: Session, moment: AsOf
) -> dict[UUID, Run]:
    """Return the running runs of the whole tree, with their tokens and cost by then."""
    tree = RunQuery((RunCondition("root", "=", session.root_session_key),))
    place = Cursor.first(moment.position, services.work.log.now())
    running = await running_so_far(services, caller, tree, place, moment=moment)
    return {run.run_id: run for run in running}


async def _grow(
    services: QueryServices, root: _Node, *, at: int, limit: int, levels: int
) -> list[_Node]:
    """Return all nodes, root first. A level that does not fit is the last one and is cut."""
    nodes = [root]
    by_key = {root.session_key: root}
    level = [root]
    for depth in range(levels + 1):
        parents = {node.session_key: node for node in level if node.session_key is not None}
        if not parents:
            break
        room = limit - len(nodes) if depth < levels else 0
        # A session that was continued has several runs but is one node.
        bars = await services.run_bars.spawned_by(list(parents), at=at, limit=2 * limit + 1)
        is_whole = len(bars) <= 2 * limit
        found: list[_Node] = []
        for bar in bars:
            parent = parents[bar.requester_session_key]
            known = by_key.get(bar.child_session_key) if bar.child_session_key else None
            if known is not None:
                known.runs.append(bar)
                continue
            if len(found) >= room:
                parent.children_cut = True
                continue
            node = _Node(bar.child_session_key, bar.created_at, bar.agent_id, bar.depth, [bar])
            if bar.child_session_key is not None:
                by_key[bar.child_session_key] = node
            parent.children.append(node)
            found.append(node)
        if not is_whole:
            _mark_cut(parents, bars[-1].requester_session_key)
        nodes += found
        level = found
    return nodes


async def _own_runs(services: QueryServices, session: Session, *, at: int) -> Sequence[RunBar]:
    """Return the runs of a child session itself, which other sessions requested."""
    if session.run_id is None:
        return ()
    return await services.run_bars.own_runs(session.session_key, at=at, limit=NODES_MAX)


async def _add_refused(
    services: QueryServices, nodes: Sequence[_Node], *, at: int, limit: int
) -> None:
    """Add the refused runs that these sessions requested, at most `limit` in all."""
    parents = {node.session_key: node for node in nodes if node.session_key is not None}
    bars = await services.run_bars.spawned_by(list(parents), at=at, limit=limit + 1, refused=True)
    for bar in bars[:limit]:
        parents[bar.requester_session_key].refused.append(bar)
    if len(bars) > limit:
        last = bars[limit].requester_session_key
        for key in list(parents)[list(parents).index(last) :]:
            parents[key].refused_cut = True


def _mark_cut(parents: Mapping[str, _Node], last: str) -> None:
    """Mark the session at which the list ended, and those after it, as cut."""
    keys = list(parents)
    for key in keys[keys.index(last) :]:
        parents[key].children_cut = True


class _RunViews(NamedTuple):
    """Data for the views of runs: stages and details by run id, texts by content id."""

    stages: Mapping[UUID, Sequence[ReachedStage]]
    details: Mapping[UUID, RunDetails]
    texts: Mapping[UUID, str]

    def of(self, form: type[R], bar: RunBar) -> R:
        """Return a run in a form."""
        details = self.details[bar.run_id]
        cost = details.cost_usd
        return view_of_bar(
            form,
            bar,
            self.stages,
            task_preview=text_of(details.task, self.texts),
            error=text_of(details.error, self.texts),
            input_tokens=details.input_tokens,
            output_tokens=details.output_tokens,
            estimated_cost_usd=float(cost) if cost is not None else None,
        )


def _node_view(
    node: _Node, sessions: Mapping[str, SessionBar], runs: _RunViews
) -> tuple[TreeNodeView, UsageSum]:
    """Return the view of a node, and the total usage of the node and all nodes below it."""
    session = sessions.get(node.session_key) if node.session_key is not None else None
    own, total = UsageSum(), UsageSum()
    for bar in node.runs:
        own.add(runs.details[bar.run_id])
    total.add(own)
    children = []
    for child in node.children:
        view, usage = _node_view(child, sessions, runs)
        children.append(view)
        total.add(usage)
    node_view = TreeNodeView(
        session_key=node.session_key,
        session_id=session.session_id if session else None,
        agent_id=session.agent_id if session else node.agent_id,
        depth=session.depth if session else node.depth,
        role=session.role if session else None,
        open=session.stage == "open" if session else True,
        created_at=session.created_at if session else node.created_at,
        active_children=session.active_children if session else 0,
        own=UsageTotalsView(**own.fields),
        total=UsageTotalsView(**total.fields),
        runs=[runs.of(TreeRunView, bar) for bar in node.runs],
        children=children,
        children_cut=node.children_cut,
        refused=[runs.of(RefusedRunView, bar) for bar in node.refused],
        refused_cut=node.refused_cut,
    )
    return node_view, total
