"""Transcripts and shared contexts of a few root sessions."""

import orjson

from application.log.envelope import Provenance
from application.log.event_log import ContentKey, Decision, DecisionContext, Submission
from application.log.texts import TextStore
from benchmarks.history.lives.requests import Asker
from benchmarks.history.world.scheduler import Life, ask
from benchmarks.history.world.society import Society
from domain.prompt.shared_context import SharedValue
from domain.run.state import Run
from domain.session.decide import ChangeSharedContext, ProvideTranscript, decide
from domain.session.decide import decide as decide_session
from domain.session.events import SessionEvent
from domain.session.shared_context import effective_shared_keys
from domain.session.state import Session
from domain.values.json_text import compact_json
from domain.values.record import session_stream
from domain.values.shared_values import SharedChange, SharedKey

SHARING_SHARE = 0.8
KEYS = ("goal", "audience", "deadline")


def written(
    society: Society, session: Session, text_store: TextStore, by: str
) -> tuple[SessionEvent, ...]:
    """Return the changes of a root session's shared context; sometimes none."""
    if society.random.random() >= SHARING_SHARE:
        return ()
    keys = society.random.sample(KEYS, society.random.randint(1, len(KEYS)))
    values = {key: compact_json(society.texts.text(1, 2)) for key in keys}
    society.shared[session.session_key] = values
    changes = tuple(
        SharedChange(key=key, value=text_store.store("shared", text))
        for key, text in values.items()
    )
    return decide(session, ChangeSharedContext(changes, cause="patch", by=by))


def inherited(
    society: Society, run: Run, text_store: TextStore
) -> tuple[tuple[SharedKey, ...], tuple[SharedValue, ...]]:
    """Return the shared context that a run starts with, as texts of its own session and as in its
    prompt.
    """
    values = society.shared.get(run.requester.session_key)
    requester = society.log.sessions.get(run.requester.session_key)
    if values is None or requester is None or run.child_session_key is None:
        return (), ()
    society.shared[run.child_session_key] = values
    found = effective_shared_keys(requester)
    return (
        tuple(
            item.changed({"value": text_store.store("shared", values[item.key])}) for item in found
        ),
        tuple(SharedValue(item.key, item.kind, values[item.key]) for item in found),
    )


ENTRIES_MAX = 8
WORDS_A_TOKEN = 0.75


def provided(society: Society, asker: Asker) -> Life[None]:
    """Upload the transcript of a recorded root session, once."""
    known = society.log.sessions.get(asker.session_key)
    if known is None or known.transcript is not None:
        return
    stream, key = session_stream(asker.session_key), society.ids.content_key()
    texts = [society.texts.text(1, 4) for _ in range(society.random.randint(1, ENTRIES_MAX))]
    lines = [orjson.dumps({"kind": "message", "role": "user", "text": text}) for text in texts]
    text = b"".join(line + b"\n" for line in lines).decode()
    tokens = round(sum(len(text.split()) for text in texts) / WORDS_A_TOKEN)

    def decide(world: DecisionContext) -> Decision[None]:
        text_store = TextStore(known.session_id, key, society.ids.event_id)
        command = ProvideTranscript(
            entries=len(texts),
            tokens=tokens,
            content=text_store.store("transcript", text),
            by=asker.actor.name,
        )
        session = world.sessions[asker.session_key]
        shared = written(society, session, text_store, asker.actor.name)
        events = (*decide_session(session, command), *shared)
        changes = [(stream, event) for event in events]
        return Decision(None, changes, text_store.contents, (ContentKey(known.session_id, key),))

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
