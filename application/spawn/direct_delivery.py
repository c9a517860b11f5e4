"""Direct delivery: the run's runtime posts the result to the thread that its session is bound
to."""

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
    """Return True if the runtime of `agent` delivers the result of the run itself.

    Args:
        agent: The run's agent.
        origin: Reference to the thread's addresses.
        stored: Texts of the next append, which may include the text of `origin`.
    """
    if run.options.mode != "session" or origin is None or not agent.delivers_to_origin:
        return False
    texts = {content.ref.id: content.text for content in stored}
    text = texts.get(origin.id) or await work.contents.text(origin)
    return is_routable(read_origin(text))
