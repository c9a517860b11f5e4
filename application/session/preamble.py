"""Changes the preamble of a session's later runs."""

from application.log.answers import PreambleAnswer
from application.log.envelope import Actor
from application.log.event_log import Decision, DecisionContext, Reservation, StoredAnswer
from application.log.unit_of_work import UnitOfWork, provenance_of
from domain.context.preamble import is_blank
from domain.session.decide import ChangePreamble, NotSpawnedHere, decide
from domain.session.state import Session
from domain.values.record import session_stream


class PreambleWriter:
    def __init__(self, work: UnitOfWork) -> None:
        self._work = work

    async def write(
        self,
        session: Session,
        text: str | None,
        actor: Actor,
        reservation: Reservation | None = None,
    ) -> StoredAnswer:
        """Record the preamble of a session's later runs. A blank text removes it. No-op if it is
        unchanged.

        Raises:
            NotSpawnedHere: If the session was not spawned here.
            SessionIsClosed: If the session is closed.
            ContentsErased: If the session's texts were erased.
            LogUnavailable, AlreadyReserved: From the log.
        """
        work, key = self._work, session.session_key
        if session.run_id is None:
            raise NotSpawnedHere(
                f"session {session.display_key} was not spawned here, so its prompts are not"
                " made here"
            )
        run = await work.run(session.run_id)
        text_store = await work.text_store(run)
        given = text if text is not None and not is_blank(text) else None

        def decision(world: DecisionContext) -> Decision[StoredAnswer]:
            texts = text_store.empty_copy()
            preamble = texts.store("preamble", given) if given is not None else None
            events = decide(world.sessions[key], ChangePreamble(preamble, actor.name))
            written = PreambleAnswer.from_source(
                session, characters=len(given or ""), changed=bool(events)
            )
            answer = StoredAnswer.of("preamble", written)
            changes = [(session_stream(key), event) for event in events]
            return Decision(answer, changes, texts.contents if events else (), answer=answer)

        appended = await work.submit(
            (session_stream(key),), decision, provenance_of(run, actor), reservation=reservation
        )
        return appended.result
