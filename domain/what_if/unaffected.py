"""Which decisions are the same under two configurations without a look at them: all that they go by
is equal."""

from collections.abc import Sequence

from domain.configuration.configuration import Configuration
from domain.run.events import SpawnRequested


class UnaffectedAgents:
    """What is equal in two configurations, section by section and agent by agent; each is compared
    once. `announcing` are all that runs may have been announced under."""

    def __init__(
        self, then: Configuration, now: Configuration, announcing: Sequence[Configuration]
    ) -> None:
        self._then = then
        self._now = now
        self._agents: dict[tuple[str, str], bool] = {}
        self._is_shared_equal = _shared(then) == _shared(now) and all(
            one.spawnlog.announce == now.spawnlog.announce for one in announcing
        )

    def is_unaffected(self, request: SpawnRequested) -> bool:
        """Whether nothing that this spawn was decided by differs. One for which scripts ran may
        have become any agent, and one of a batch depends on the others: these are looked at."""
        if not self._is_shared_equal or request.batch is not None:
            return False
        requester, requested = request.facts.requester_agent_id, request.requested_agent_id
        if requested is None:
            return True
        pair = (requester, requested)
        known = self._agents.get(pair)
        if known is None:
            known = self._agents[pair] = self._is_equal(requester, requested)
        return known

    def _is_equal(self, requester: str, requested: str) -> bool:
        pairs = [
            (self._then.effective_agent(one), self._now.effective_agent(one))
            for one in (requester, requested)
        ]
        has_scripts = bool(pairs[1][0].context_scripts)
        return not has_scripts and all(then == now for then, now in pairs)


def _shared(configuration: Configuration) -> tuple[object, ...]:
    """What is the same for all agents, and is looked at by a decision."""
    settings = configuration.spawnlog
    return (
        configuration.session,
        configuration.tools,
        configuration.default_agent_id,
        configuration.extra,
        settings.hooks,
        settings.announce,
        settings.workspace_roots,
    )
