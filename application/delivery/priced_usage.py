"""Token usage of a run, with the prices of the revision under which it was admitted."""

import logging
from collections.abc import Sequence

from application.log.unit_of_work import UnitOfWork
from application.ports.configurations import RevisionErasedError
from domain.configuration.models import Models
from domain.configuration.problems import ConfigurationError
from domain.delivery.cost import price_usage
from domain.delivery.transcript import UsageEntry
from domain.run.facts import Usage
from domain.run.state import Run

_log = logging.getLogger("spawnlog.usage")


async def priced_usage(
    work: UnitOfWork, run: Run, usages: Sequence[UsageEntry], *, warns: bool = False
) -> Usage | None:
    """Return the sum of the reported tokens; None if none were reported.

    It has no prices if the revision was erased or cannot be read. `warns` logs that; set it for a
    sum that is recorded.
    """
    if not usages:
        return None
    models = Models()
    try:
        pinned = await work.configurations.at(run.config_revision)
        assert run.agent_id is not None
        models = pinned.configuration.effective_agent(run.agent_id).models
    except (RevisionErasedError, ConfigurationError) as unread:
        if warns:
            _log.warning("run %s: the cost of its tokens is unknown: %s", run.run_id, unread)
    return price_usage(usages, models, run.plan.model_reference if run.plan else None)
