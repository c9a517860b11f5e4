"""What a few root sessions share with those that they spawn."""

from application.log.texts import TextStore
from benchmarks.history.society import Society
from domain.prompt.shared_context import SharedValue
from domain.run.state import Run
from domain.session.decide import ChangeSharedContext, decide
from domain.session.events import SessionEvent
from domain.session.shared_context import effective_shared_keys
from domain.session.state import Session
from domain.values.json_text import compact_json
from domain.values.shared_values import SharedChange, SharedKey

SHARING_SHARE = 0.8
KEYS = ("goal", "audience", "deadline")


def written(
    society: Society, session: Session, text_store: TextStore, by: str
) -> tuple[SessionEvent, ...]:
    """What the owner of a root session writes into its shared context; now and then nothing."""
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
    """What a run starts with, kept as texts of its own session, and as its prompt shows it."""
    values = society.shared.get(run.requester.session_key)
    requester = society.log.sessions.get(run.requester.session_key)
    if values is None or requester is None or run.child_session_key is None:
        return (), ()
    society.shared[run.child_session_key] = values
    found = effective_shared_keys(requester)
    return (
        tuple(one.changed({"value": text_store.store("shared", values[one.key])}) for one in found),
        tuple(SharedValue(one.key, one.kind, values[one.key]) for one in found),
    )
