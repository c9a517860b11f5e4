"""Recorded requests for spawns, compared with a model."""

from domain.run.events import SpawnRequested
from tests.support.builders.decided_spawns import DecidedSpawns
from tests.support.models import spawn_words as words
from tests.support.models.spawn_model import SpawnModel


def requested_as_judged(real: DecidedSpawns, model: SpawnModel, name: str, children: int) -> None:
    """Assert that the recorded request and its facts are those of the model."""
    request, revision = model.asked[name]
    rules, life = model.revisions[revision - 1], model.tree.lives[name]
    seen = model.seen[life.by]
    requested = real.only(name, SpawnRequested)
    judged = requested.facts
    assert (judged.caller_depth, judged.max_spawn_depth) == (seen.depth, rules.depth)
    assert (judged.active_children, judged.max_children) == (children, rules.children)
    assert (judged.mode, judged.thread) == (request.effective_mode, request.thread)
    assert judged.requester_agent_id == seen.agent
    assert judged.agent_id_argument_given == (request.agent_id is not None)
    assert judged.require_agent_id == rules.require(seen.agent)
    assert judged.allow_agents == rules.allow(seen.agent)
    assert requested.config_revision == revision
    is_none = request.agent_id in words.NO_AGENT_IDS
    assert judged.target_agent_id == (None if is_none else life.agent_id)
    assert requested.requested_agent_id == judged.target_agent_id
    if requested.agent_id_argument is not None:
        assert real.text(requested.agent_id_argument) == request.agent_id
    assert (requested.agent_id_argument is not None) == is_none
