"""What a few root sessions tell of what has been said in them, and share with their families."""

import orjson

from application.log.envelope import Provenance
from application.log.event_log import ContentKey, Decision, Submission, World
from application.log.texts import TextStore
from benchmarks.history.requests import Asker
from benchmarks.history.sharing import written
from benchmarks.history.society import Society
from benchmarks.history.town import Life, ask
from domain.session.decide import ProvideTranscript
from domain.session.decide import decide as decide_session
from domain.values.record import session_stream

ENTRIES_MAX = 8
WORDS_A_TOKEN = 0.75


def provided(society: Society, asker: Asker) -> Life[None]:
    """A root session that is on record tells what has been said in it, once."""
    known = society.log.sessions.get(asker.session_key)
    if known is None or known.transcript is not None:
        return
    stream, key = session_stream(asker.session_key), society.ids.content_key()
    said = [society.texts.text(1, 4) for _ in range(society.random.randint(1, ENTRIES_MAX))]
    lines = [orjson.dumps({"kind": "message", "role": "user", "text": text}) for text in said]
    text = b"".join(line + b"\n" for line in lines).decode()
    tokens = round(sum(len(one.split()) for one in said) / WORDS_A_TOKEN)

    def decide(world: World) -> Decision[None]:
        text_store = TextStore(known.session_id, key, society.ids.event_id)
        command = ProvideTranscript(
            entries=len(said),
            tokens=tokens,
            content=text_store.store("transcript", text),
            by=asker.actor.name,
        )
        session = world.sessions[asker.session_key]
        shared = written(society, session, text_store, asker.actor.name)
        events = (*decide_session(session, command), *shared)
        changes = [(stream, event) for event in events]
        return Decision(None, changes, text_store.kept, (ContentKey(known.session_id, key),))

    yield from ask(
        Submission(
            command_id=society.ids.event_id(),
            streams=(stream,),
            decide=decide,
            provenance=Provenance(
                actor=asker.actor,
                correlation=asker.root,
                config_revision=society.pinned.revision,
            ),
        )
    )
