"""Where the result of a run is to go from its requester's inbox."""

import logging

from application.log.unit_of_work import UnitOfWork
from application.ports.configurations import RevisionErased
from application.ports.hooks import HookClient, HookFailure
from application.steps.thread_binding import requester_origin
from domain.configuration.problems import ConfigurationError
from domain.context.thread_binding import (
    INTERNAL_CHANNEL,
    delivery_origin,
    merge_origins,
    origin_text,
)
from domain.delivery.hook_payloads import delivery_target_call
from domain.run.state import Run

_log = logging.getLogger("spawnlog.announcing")


async def ask_delivery_target(work: UnitOfWork, hooks: HookClient, run: Run) -> str | None:
    """What hook `subagentDeliveryTarget` says, as it is kept; None when it is not asked or says
    nothing that can be used: then it is where the child or its requester is. It is asked once, for
    a child without a thread whose requester is nobody's child."""
    if run.requester.depth > 0 or run.delivery_origin is not None:
        return None
    try:
        pinned = await work.configurations.at(run.config_revision)
    except (RevisionErased, ConfigurationError) as unread:
        _log.warning("run %s: nobody is asked where its result goes: %s", run.run_id, unread)
        return None
    if pinned.configuration.spawnlog.hooks.subagent_delivery_target is None:
        return None
    requester = await requester_origin(run, work.contents)
    try:
        answer = await hooks.ask(pinned, delivery_target_call(run, requester))
    except HookFailure as threw:
        _log.warning("run %s: hook subagentDeliveryTarget: %s", run.run_id, threw)
        return None
    origin = delivery_origin((answer.said or {}).get("origin"))
    if not origin or origin.get("channel") == INTERNAL_CHANNEL:
        return None
    return origin_text(merge_origins(origin, requester))
