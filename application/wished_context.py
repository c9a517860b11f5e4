"""The context that a child is to have, from its request and the configuration it was admitted
under."""

from application.log.unit_of_work import UnitOfWork
from application.steps.thread_binding import requester_origin
from domain.context.fork import ContextRequest, resolve_context_request
from domain.run.state import Run


async def read_context_request(work: UnitOfWork, run: Run) -> ContextRequest:
    """What the request says, else what holds for threads where its requester is."""
    if run.context_argument is not None or not run.thread or run.requester.origin is None:
        return resolve_context_request(
            run.context_argument, thread=run.thread, channel=None, default="isolated"
        )
    origin = await requester_origin(run, work.contents)
    channel, account = (
        str(origin[name]) if name in origin else None for name in ("channel", "accountId")
    )
    pinned = await work.configurations.at(run.config_revision)
    policy = pinned.configuration.threads_of(channel, account)
    return resolve_context_request(
        None, thread=True, channel=channel, default=policy.default_spawn_context
    )
