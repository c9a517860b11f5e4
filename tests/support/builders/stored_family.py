"""A family whose texts are all stored and whose transcripts are sealed, as by a server."""

from pathlib import Path
from typing import Any

from psycopg_pool import AsyncConnectionPool
from uuid_utils.compat import uuid7

from application.log.envelope import SYSTEM, Actor
from application.log.event_log import Appended, ContentKey, EventLog, StoredAnswer
from application.log.texts import SessionTexts, TextStore
from application.log.unit_of_work import CommandLog
from application.ports.runtimes import TranscriptEntry
from domain.run.commands import RunCommand
from domain.run.facts import Ingredient, ScriptReceipt, TranscriptSeal
from domain.run.state import Run
from domain.values.record import ContentRef
from domain.values.shared_values import SharedChange, SharedKey
from infrastructure.outbound.identity.identifiers import RandomIdentities
from infrastructure.outbound.log.schema.connections import LogConnection
from infrastructure.outbound.transcripts.transcripts import StoredTranscripts
from tests.support.builders.logged_family import LoggedFamily, content_key_of

RECEIPT_TEXTS = ("output", "injected", "error")


class KeptFamily(LoggedFamily):
    """A family that stores a text for each reference in a command of a test.

    `text` makes a text from its kind and the run's name; transcripts are files below `folder`.
    """

    def __init__(
        self, log: EventLog, pool: AsyncConnectionPool[LogConnection], folder: Path, **more: Any
    ) -> None:
        super().__init__(log, **more)
        self.transcripts = StoredTranscripts(pool, folder)

    def text(self, kind: str, name: str) -> str:
        return f"the {kind} of {name}: ä {'z' * 300}"

    async def tell(
        self,
        name: str,
        *commands: RunCommand,
        actor: Actor = SYSTEM,
        spawn_answer: StoredAnswer | None = None,
    ) -> Appended[None]:
        run = self.run(name)
        text_store = TextStore(run.session_id, content_key_of(run.session_id), uuid7)
        above = self._keeper_above(run)
        kept = tuple(
            _kept(command, text_store, lambda kind: self.text(kind, name), above.text_store)
            for command in commands
        )
        commanded = CommandLog(self.log, RandomIdentities())
        return self.heard(
            await commanded.record(
                run, kept, text_store, actor=actor, spawn_answer=spawn_answer, above=above
            )
        )

    def _keeper_above(self, run: Run) -> SessionTexts:
        """Return the text store of the requester's session, to which the shared values of a spawn
        belong.
        """
        session_id = self.sessions[run.requester.session_key].session_id
        key = content_key_of(session_id)
        text_store = TextStore(session_id, key, uuid7)
        return SessionTexts(session_id, text_store, ContentKey(session_id, key), is_new_key=False)

    async def end(self, name: str, **changes: Any) -> None:
        run = self.run(name)
        entries = [
            TranscriptEntry("message", {"role": "assistant", "text": f"{word} of {name}"})
            for word in ("beginning", "middle", "end")
        ]
        if run.stage == "started":
            assert await self.transcripts.append(run.run_id, run.epoch, 1, entries)
            changes = {"transcript": await self._seal(run), **changes}
        await super().end(name, **changes)

    async def _seal(self, run: Run) -> TranscriptSeal:
        sealed = await self.transcripts.seal(run.run_id, key=content_key_of(run.session_id))
        path = self.transcripts.file_path(
            run.run_id,
            session_id=run.session_id,
            agent_id="main",
            continues=run.continues is not None,
        )
        return TranscriptSeal(count=sealed.count, bytes=sealed.bytes, hmac=sealed.hmac, path=path)


def _kept(command: Any, text_store: TextStore, text: Any, above: TextStore) -> Any:
    """Return the command with each reference replaced by a reference to a stored text."""
    changes: dict[str, Any] = {}
    for name in command.__struct_fields__:
        value = getattr(command, name)
        if isinstance(value, ContentRef):
            changes[name] = text_store.store(name, text(name))
        elif isinstance(value, tuple):
            owner = above if name == "shared" else text_store
            changes[name] = tuple(_kept_piece(piece, owner, text) for piece in value)
    return command.changed(changes)


def _kept_piece(piece: Any, text_store: TextStore, text: Any) -> Any:
    if isinstance(piece, Ingredient):
        return piece.changed({"content": text_store.store("ingredient", text("ingredient"))})
    if isinstance(piece, ScriptReceipt):
        named = [name for name in RECEIPT_TEXTS if getattr(piece, name) is not None]
        return piece.changed({name: text_store.store(name, text(name)) for name in named})
    if isinstance(piece, SharedKey | SharedChange):
        return piece.changed({"value": text_store.store("shared", text("shared"))})
    return piece
