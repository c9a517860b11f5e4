"""The active configuration, recorded in the log and followed by every process."""

import logging
from collections.abc import Mapping
from typing import Any, Generic, Protocol, TypeVar

from application.log.envelope import Actor, Provenance
from application.log.event_log import ContentKey, Decision, DecisionContext
from application.log.texts import Contents, SessionTexts, TextStore, keyed_hash
from application.log.unit_of_work import CommandLog, with_fresh_reads
from application.ports.configurations import (
    ConfigurationFile,
    NoActiveConfigurationError,
    PinnedConfiguration,
    RevisionErasedError,
)
from domain.configuration.configuration import Configuration
from domain.event_types import ConfigurationActivated
from domain.values.record import CONFIG_STREAM, ContentRef
from domain.values.refusals import ReadAgain

REVISIONS_REMEMBERED_MAX = 100
ATTEMPTS_MAX = 20
F = TypeVar("F", bound=ConfigurationFile)
F_contra = TypeVar("F_contra", bound=ConfigurationFile, contravariant=True)
_log = logging.getLogger("spawnlog.configuration")


class ConfigurationFiles(Protocol[F_contra]):
    """The configuration files that this process has read."""

    def assign(self, revision: int, file: F_contra) -> None:
        """Associate a file with the revision that it became."""
        ...

    async def find(self, revision: int, source: str, text: str, *, again: bool = False) -> None:
        """Find the file of a revision at its recorded path `source`, unless it is known.

        If it cannot be used, warn and continue with `text`, in which secrets are references.
        `again` searches even if the file is known.
        """
        ...

    def parse(self, text: str) -> tuple[Configuration, Mapping[str, object]]:
        """Parse a stored configuration. Return the configuration and the whole of it as JSON.

        Raises:
            ConfigurationError: If this release cannot read it.
        """
        ...


class ActiveConfigurations(Generic[F]):
    """The active configuration and earlier revisions. Implements `Configurations`.

    The texts of revisions are contents owned by the log itself.
    """

    def __init__(
        self, commands: CommandLog, contents: Contents, files: ConfigurationFiles[F]
    ) -> None:
        self._commands = commands
        self._contents = contents
        self._files = files
        self._current: PinnedConfiguration | None = None
        self._pinned: dict[int, PinnedConfiguration] = {}
        self._spans: dict[int, tuple[int, int]] = {}
        self._contents_of: dict[int, ContentRef] = {}
        self._appending: int | None = None

    def current(self) -> PinnedConfiguration:
        """Return the active revision."""
        assert self._current is not None
        return self._current

    async def activate(self, file: F, actor: Actor) -> int:
        """Activate the configuration of a file, and return its revision. No-op if it is active
        already."""
        revision = await with_fresh_reads(
            lambda _: self._record(file, actor),
            "the configuration changes too fast to follow; retry in a moment",
            attempts_max=ATTEMPTS_MAX,
        )
        self._files.assign(revision, file)
        pinned = PinnedConfiguration(revision, file.configuration, file.stored)
        self._pinned[revision] = pinned
        forget_oldest(self._pinned)
        self._adopt(pinned)
        return revision

    async def newest(self) -> tuple[int, str] | None:
        """Return number and source of the last revision of the log; None for a new log."""
        last = await self._last()
        return (last.revision, last.source) if last is not None else None

    async def keep(self, first: F, actor: Actor) -> int:
        """Adopt the active revision of the log and return its number. A new log begins with
        `first`.

        Raises:
            RevisionErasedError: If the text of the revision was erased.
            ConfigurationError: If this release cannot read it.
        """
        revision = await with_fresh_reads(
            lambda _: self._last_or_first(first, actor),
            "the configuration changes too fast to follow; retry in a moment",
            attempts_max=ATTEMPTS_MAX,
        )
        self._adopt(await self.at(revision))
        return revision

    async def find_file_again(self) -> int:
        """Search again for the file of the active revision, and for its secrets. Return the
        revision, which does not change."""
        revision = self.current().revision
        event = await self._activation(revision)
        await self._files.find(revision, event.source, await self._text(event), again=True)
        return revision

    async def follow(self, revision: int) -> None:
        """Adopt a revision that another process has activated."""
        if self._current is not None and revision > self._current.revision:
            # The process's own revision may be seen before its append returns; its caller reports
            # it.
            is_own = revision == self._appending
            self._adopt(await self.at(revision))
            if not is_own:
                _log.info("configuration revision %d is active", revision)

    async def at(self, revision: int) -> PinnedConfiguration:
        """Return a revision of the log."""
        pinned = self._pinned.get(revision)
        if pinned is None:
            pinned = self._pinned[revision] = await self._read(revision)
            forget_oldest(self._pinned)
        # A caller knows a later revision from the log, so it is active.
        self._adopt(pinned)
        return pinned

    async def in_force(self, position: int) -> PinnedConfiguration:
        """Return the revision in force at a position."""
        return await self.at(await self._revision_at(position))

    async def is_kept(self, revision: int) -> bool:
        """Return True if the text of a revision is still stored. Only its beginning is read."""
        content = self._contents_of.get(revision)
        if content is None:
            content = (await self._activation(revision)).content
            self._contents_of[revision] = content
            forget_oldest(self._contents_of)
        return content.id in await self._contents.previews([content])

    async def _revision_at(self, position: int) -> int:
        """Return the number of the revision in force at a position.

        Results are cached as position ranges: between two positions with the same revision there
        was no other.
        """
        for revision, (first, last) in self._spans.items():
            if first <= position <= last:
                return revision
        revision = await self._commands.log.version_of(CONFIG_STREAM, at=position)
        if revision == 0:
            raise NoActiveConfigurationError(f"no configuration was active at position {position}")
        first, last = self._spans.pop(revision, (position, position))
        self._spans[revision] = min(first, position), max(last, position)
        forget_oldest(self._spans)
        return revision

    def _adopt(self, pinned: PinnedConfiguration) -> None:
        """Make a revision current unless a later one is. A later one may arrive while an activation
        is confirmed."""
        if self._current is None or pinned.revision >= self._current.revision:
            self._current = pinned

    async def _record(self, file: F, actor: Actor) -> int:
        """Return the last revision if it equals the file, else record the file as the next one."""
        last, texts = await self._last(), await self._texts()
        if last is not None and last.content.hmac == keyed_hash(
            texts.key.key, file.stored_text.encode()
        ):
            return last.revision
        self._appending = (last.revision if last else 0) + 1
        try:
            return await self._append(file, texts, self._appending, actor)
        finally:
            self._appending = None

    async def _last_or_first(self, first: F, actor: Actor) -> int:
        last = await self._last()
        if last is not None:
            return last.revision
        self._appending = 1
        try:
            return await self._append(first, await self._texts(), 1, actor)
        finally:
            self._appending = None

    async def _append(self, file: F, texts: SessionTexts, revision: int, actor: Actor) -> int:
        appended = await self._commands.submit(
            (CONFIG_STREAM,),
            lambda world: decide_activation(world, file, texts, revision, actor),
            Provenance(actor=actor, config_revision=revision),
        )
        return appended.result

    async def _texts(self) -> SessionTexts:
        log_id, ids = self._commands.log.log_id, self._commands.identities
        key = await self._contents.key(log_id)
        minted = key or ids.content_key()
        text_store = TextStore(log_id, minted, ids.event_id)
        return SessionTexts(log_id, text_store, ContentKey(log_id, minted), key is None)

    async def _last(self) -> ConfigurationActivated | None:
        log = self._commands.log
        newest = await log.version_of(CONFIG_STREAM, at=await log.head())
        return await self._activation(newest) if newest else None

    async def _activation(self, revision: int) -> ConfigurationActivated:
        """Return the event that activated a revision. Revisions are the versions of the stream."""
        recorded = await self._commands.log.event_of(CONFIG_STREAM, revision)
        assert recorded is not None
        assert isinstance(recorded.event, ConfigurationActivated)
        return recorded.event

    async def _read(self, revision: int) -> PinnedConfiguration:
        event = await self._activation(revision)
        text = await self._text(event)
        pinned = PinnedConfiguration(revision, *self._files.parse(text))
        if self._current is None or revision > self._current.revision:
            await self._files.find(revision, event.source, text)
        return pinned

    async def _text(self, event: ConfigurationActivated) -> str:
        text = await self._contents.text(event.content)
        if text is None:
            raise RevisionErasedError(
                f"the text of configuration revision {event.revision} was erased"
            )
        return text


def forget_oldest(remembered: dict[int, Any]) -> None:
    """Keep the last `REVISIONS_REMEMBERED_MAX` entries added."""
    while len(remembered) > REVISIONS_REMEMBERED_MAX:
        del remembered[next(iter(remembered))]


def decide_activation(
    world: DecisionContext,
    file: ConfigurationFile,
    texts: SessionTexts,
    revision: int,
    actor: Actor,
) -> Decision[int]:
    """Activate the file's configuration as `revision`. `texts` are those of the log itself.

    Raises:
        ReadAgain: If another revision was activated meanwhile.
    """
    if world.config_version != revision - 1:
        raise ReadAgain("another configuration was activated")
    text_store = texts.text_store.empty_copy()
    event = ConfigurationActivated(
        revision=revision,
        content=text_store.store("configuration", file.stored_text),
        source=file.source,
        activated_by=actor.name,
    )
    return Decision(revision, ((CONFIG_STREAM, event),), text_store.contents, texts.keys)
