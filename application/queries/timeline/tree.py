"""A session and all below it, as a tree, now or as it was."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from pydantic import Field

from application.ports.run_bars import ReachedStage, RunBar, SessionBar
from application.queries.access import Caller
from application.queries.as_of import resolve_as_of
from application.queries.command import Command, Option
from application.queries.operation import ReadAsOf, operation
from application.queries.services import QueryServices
from application.queries.sessions import visible_session
from application.queries.views.run import RunView, view_of_bar
from application.queries.views.view import Answer, View, selection
from domain.session.state import Session

NODES_MAX = 2_000
NODES_DEFAULT = 500
LEVELS_MAX = 64
"""No session is deeper below another."""


@selection(
    "run_id", "stage", "status", "outcome", "agent_id", "label", "respawned_from", "created_at",
    "stages",
)  # fmt: skip
class TreeRunView(RunView):
    """A run in a tree. `respawnedFrom` is the run that it was made from, in whichever tree."""


@selection(*TreeRunView.model_fields, "rule", "child_session_key")
class RefusedRunView(RunView):
    """A run that was refused, and the rule that refused it. Of a refused message `childSessionKey`
    is the session that it was for; of most spawns it is null."""


class TreeNodeView(View):
    """A session with its own runs in order of creation, and those below it. `sessionKey` is null
    for a spawn that is prepared and has no session yet. `childrenCut` says that there may be others
    below it than those in `children`: ask for the tree of this session. `refused` are the runs that
    this session asked for and that were refused, in order of creation: spawns, and messages to its
    children. `refusedCut` says that there may be more of them: ask the registry."""

    session_key: str | None
    session_id: UUID | None
    agent_id: str | None
    depth: int
    role: str | None
    open: bool
    created_at: datetime
    active_children: int
    runs: list[TreeRunView]
    children: "list[TreeNodeView]"
    children_cut: bool
    refused: list[RefusedRunView]
    refused_cut: bool


class SessionTreeView(View):
    """A session and its descendants. `nodes` counts sessions and spawns that are prepared. `cut`
    says that some are left out: the nodes above them say so. `position` is where it is true, `at`
    the instant that was asked for, or when the position was recorded."""

    position: int
    at: datetime | None
    nodes: int
    cut: bool
    root: TreeNodeView


@dataclass(slots=True)
class _Node:
    """What was found of a session, or of a spawn that has none yet."""

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

    limit: int = Field(NODES_DEFAULT, ge=1, le=NODES_MAX, description="How many nodes at most.")
    depth: int = Field(
        LEVELS_MAX, ge=0, le=LEVELS_MAX, description="How many levels below the session at most."
    )


@operation(
    "GET",
    "/v1/sessions/{key}/tree",
    name="getSessionTree",
    tag="sessions",
    scope="read",
    summary="A session and all below it",
    description=(
        "The session with its own runs and, below it, those that it spawned, each with its runs,"
        " the position and instant of every stage, and how many places it has taken. Level by"
        " level, `limit` nodes at most: `cut` says that some are left out, and `childrenCut` of a"
        " node that they are below that one, whose own tree has them. `refused` of a node are the"
        " spawns that it asked for and that were refused, each with its `rule`; of the whole tree"
        " `limit` at most. `refusedCut` says that the registry has more of them."
    ),
    errors=("not_found",),
    command=Command(
        "session tree",
        by_hand=True,
        options={
            "limit": Option(
                help="How many sessions at most.", default=NODES_DEFAULT, maximum=NODES_MAX
            ),
            "depth": Option(help="How many levels below it at most.", default=LEVELS_MAX),
        },
    ),
)
async def get_session_tree(
    services: QueryServices, caller: Caller, key: str, query: GetSessionTree
) -> Answer[SessionTreeView]:
    """Return the tree below a session: level by level, so that the deepest nodes are left out."""
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
    stages = await services.run_bars.stages({bar.run_id: bar.version for bar in bars})
    instant = moment.instant or await services.work.log.recorded_at(moment.position)
    view = SessionTreeView(
        position=moment.position,
        at=instant,
        nodes=len(nodes),
        cut=any(node.children_cut for node in nodes),
        root=_node_view(root, sessions, stages),
    )
    return Answer(view, moment.position)


async def _grow(
    services: QueryServices, root: _Node, *, at: int, limit: int, levels: int
) -> list[_Node]:
    """All nodes, the root first. A level that does not fit is the last one, and is cut."""
    nodes = [root]
    by_key = {root.session_key: root}
    level = [root]
    for depth in range(levels + 1):
        parents = {node.session_key: node for node in level if node.session_key is not None}
        if not parents:
            break
        room = limit - len(nodes) if depth < levels else 0
        # A session that went on has a run for each time, and is one node.
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
    """Return the runs of a child's session itself, which others asked for."""
    if session.run_id is None:
        return ()
    return await services.run_bars.own_runs(session.session_key, at=at, limit=NODES_MAX)


async def _add_refused(
    services: QueryServices, nodes: Sequence[_Node], *, at: int, limit: int
) -> None:
    """Add the runs that the sessions of these nodes asked for in vain, at most `limit` in all."""
    parents = {node.session_key: node for node in nodes if node.session_key is not None}
    bars = await services.run_bars.spawned_by(list(parents), at=at, limit=limit + 1, refused=True)
    for bar in bars[:limit]:
        parents[bar.requester_session_key].refused.append(bar)
    if len(bars) > limit:
        last = bars[limit].requester_session_key
        for key in list(parents)[list(parents).index(last) :]:
            parents[key].refused_cut = True


def _mark_cut(parents: Mapping[str, _Node], last: str) -> None:
    """Of the session at which the list ended, and of those behind it, nothing more is known."""
    keys = list(parents)
    for key in keys[keys.index(last) :]:
        parents[key].children_cut = True


def _node_view(
    node: _Node,
    sessions: Mapping[str, SessionBar],
    stages: Mapping[UUID, Sequence[ReachedStage]],
) -> TreeNodeView:
    session = sessions.get(node.session_key) if node.session_key is not None else None
    return TreeNodeView(
        session_key=node.session_key,
        session_id=session.session_id if session else None,
        agent_id=session.agent_id if session else node.agent_id,
        depth=session.depth if session else node.depth,
        role=session.role if session else None,
        open=session.stage == "open" if session else True,
        created_at=session.created_at if session else node.created_at,
        active_children=session.active_children if session else 0,
        runs=[view_of_bar(TreeRunView, bar, stages) for bar in node.runs],
        children=[_node_view(child, sessions, stages) for child in node.children],
        children_cut=node.children_cut,
        refused=[view_of_bar(RefusedRunView, bar, stages) for bar in node.refused],
        refused_cut=node.refused_cut,
    )
