"""Whether the runtime of a run brings its result to the thread that its session is bound to."""

from collections.abc import Sequence

from application.log.event_log import Content
from application.log.unit_of_work import UnitOfWork
from domain.configuration.configuration import EffectiveAgent
from domain.context.thread_binding import is_routable, read_origin
from domain.run.state import Run
from domain.values.record import ContentRef


async def delivers_directly(
    work: UnitOfWork,
    run: Run,
    agent: EffectiveAgent,
    origin: ContentRef | None,
    stored: Sequence[Content] = (),
) -> bool:
    """Whether it does. `agent` is that of the run; `origin` says where the thread is, and its text
    may be one of those that are `stored` by the next append."""
    if run.options.mode != "session" or origin is None or not agent.delivers_to_origin:
        return False
    texts = {one.ref.id: one.text for one in stored}
    text = texts.get(origin.id) or await work.contents.text(origin)
    return is_routable(read_origin(text))
