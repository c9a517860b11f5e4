"""Random spawns and messages, and pairs of configurations that decide them."""

from dataclasses import fields, replace
from typing import Any

from hypothesis import strategies as st

from tests.support.builders.configured_spawns import Rules
from tests.support.builders.decisions_again import Sent, Spawn, below
from tests.support.models.random_plans import PLANNING, WISHES
from tests.support.models.random_spawns import ASKED, RULES
from tests.support.models.spawn_model import Asked

ANY_RULES = RULES | PLANNING
INHERITED: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "model": st.sampled_from(["p/big", "solo"]),
        "thinking": st.sampled_from(["high", "low"]),
        "workspace_dir": st.just("/srv/recorded"),
    },
)


@st.composite
def two_rules(draw: st.DrawFn) -> tuple[Rules, Rules]:
    """Return two configurations, mostly with one or two differences."""
    then, now = draw(ANY_RULES), draw(ANY_RULES)
    names = [field.name for field in fields(Rules)]
    taken = draw(st.lists(st.sampled_from(names), min_size=1, max_size=2) | st.just(names))
    return then, replace(then, **{name: getattr(now, name) for name in taken})


@st.composite
def _spawns(draw: st.DrawFn, kind: type[Spawn]) -> Spawn:
    request: Asked = draw(ASKED | WISHES)
    agent, depth = request.poses_as or "main", draw(st.sampled_from([0, 0, 1, 2]))
    asks = below(depth, **draw(INHERITED)) if depth else {}
    options = {
        "run_timeout_seconds": request.seconds,
        "sandbox": request.sandbox,
        "requester_sandboxed": request.is_boxed,
        "active_model": request.active_model,
        "active_thinking": request.active_thinking,
    }
    return kind(
        agent_id=request.agent_id,
        requester={**asks, "agent_id": agent},
        is_boxed=False if depth else draw(st.sampled_from([False, False, True, None])),
        active_children=draw(st.integers(0, 3)),
        mode=request.effective_mode,
        thread=request.thread,
        model=request.model,
        thinking=request.thinking,
        folder=request.folder is not None,
        options=options,
    )


SPAWNS: st.SearchStrategy[Spawn] = _spawns(Spawn)
"""Requests of a root session or of a child."""


def _sent(spawn: Spawn, is_paused: bool) -> Spawn:
    # A session keeps its agent; the request cannot change it.
    return spawn.changed(is_paused=is_paused, agent_id=spawn.agent_id and "worker")


MESSAGES: st.SearchStrategy[Spawn] = st.builds(_sent, _spawns(Sent), st.booleans())
"""Messages to a session whose previous run may have yielded."""
