"""The context that a child is to have, from its request and the configuration it was admitted
under."""

from application.steps.thread_binding import requester_origin
from application.work import Work
from domain.context_fork import ContextWish, wished_context
from domain.run.state import Run


async def context_wish(work: Work, run: Run) -> ContextWish:
    """What the request says, else what holds for threads where its requester is."""
    if run.context_argument is not None or not run.thread or run.requester.origin is None:
        return wished_context(
            run.context_argument, thread=run.thread, channel=None, default="isolated"
        )
    origin = await requester_origin(run, work.contents)
    channel, account = (
        str(origin[name]) if name in origin else None for name in ("channel", "accountId")
    )
    pinned = await work.configurations.at(run.config_revision)
    policy = pinned.configuration.threads_of(channel, account)
    return wished_context(None, thread=True, channel=channel, default=policy.default_spawn_context)
