"""The active configuration: a fact of the log, which every process on it follows."""

import errno
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from uuid import UUID

import orjson

from application.log.envelope import Actor, Provenance
from application.log.event_log import ContentKey, Decision, EventLog, Submission, World
from application.log.texts import Contents, TextStore, keyed_hash
from application.ports.configurations import (
    PinnedConfiguration,
    RevisionErased,
    SecretMissing,
    WorkspaceForbidden,
)
from application.ports.credentials import Credential
from application.ports.identifiers import Identities
from domain.configuration.configuration import Configuration
from domain.configuration.problems import ConfigurationError
from domain.configuration.runtimes import CommandRuntime, Runtime
from domain.configuration.secrets import SecretReference, is_secret_name, variables_in
from domain.event_types import ConfigurationActivated
from domain.values.record import CONFIG_STREAM
from domain.values.refusals import Rejected
from infrastructure.outbound.configuration.load import (
    LoadedConfiguration,
    configuration_from_stored,
)
from infrastructure.outbound.configuration.secrets import is_evident_secret

# Folders that a child is given because its requester works in them.


_BELOW_NO_ROOT = (
    "The workspace that the request names is not below a configured root. Add its root to "
    "spawnlog.workspaceRoots, or leave workspaceDir out."
)
_REPLACED = (
    "The workspace on record for the requester is not the folder it was: a link leads from it to "
    "another one. Put the folder back in the place of the link, or ask from another session."
)
_NOT_IN_THE_RECORDED = (
    "The workspace that the request names is not in the one on record for its requester. Name a "
    "folder in that one, or leave workspaceDir out."
)


def resolve_own_workspace(folder: Path) -> str:
    """An agent's own folder with every link resolved, whether it is there or not. OSError when no
    folder can be there: something else is in its place, or a link that leads nowhere."""
    there, missing = folder, list[str]()
    while not os.path.lexists(there):
        missing.append(there.name)
        there = there.parent
    if ".." in missing:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    root = _resolve_existing(os.path.realpath(there, strict=True))
    return os.path.join(root, *reversed(missing))


def verify_recorded_workspace(recorded: str) -> str:
    """The folder on record. It was recorded with every link resolved, so one that leads elsewhere
    by now was put there later, maybe by whoever works in it: that is refused."""
    if os.path.realpath(recorded) != recorded:
        raise WorkspaceForbidden(_REPLACED)
    return _resolve_existing(recorded)


def resolve_below_recorded(requested: str, recorded: str) -> str:
    """The folder that a request names, once it is known to be in the one on record."""
    return _resolve_below(
        requested, [Path(verify_recorded_workspace(recorded))], _NOT_IN_THE_RECORDED
    )


def resolve_below_roots(requested: str, roots: Iterable[Path]) -> str:
    """The folder that a request names, once it is known to be below one of these."""
    return _resolve_below(requested, roots, _BELOW_NO_ROOT)


def _resolve_below(requested: str, roots: Iterable[Path], refused: str) -> str:
    """The folder with every link resolved, which is what was compared. Whether it exists is looked
    at last: who may not have it learns nothing of it."""
    if not os.path.isabs(requested) or "\0" in requested:
        raise WorkspaceForbidden(refused)
    folder = Path(os.path.realpath(requested))
    if not any(folder.is_relative_to(os.path.realpath(root)) for root in roots):
        raise WorkspaceForbidden(refused)
    return _resolve_existing(str(folder))


def _resolve_existing(path: str) -> str:
    """A folder that has to be there. OSError when it is not, or is no folder."""
    if not Path(path).is_dir():
        os.stat(path)
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    return path


_log = logging.getLogger("spawnlog.configuration")
REVISIONS_MAX = 100_000
ATTEMPTS_MAX = 20
REVISIONS_REMEMBERED_MAX = 100


class WorkspaceUnusable(OSError):
    """The folder that an agent was given cannot be told."""


class _ActivatedMeanwhile(Rejected):
    """Another process activated a configuration in between."""


class ActiveConfigurations:
    """Implements `Configurations`. The log itself owns the contents of its revisions."""

    def __init__(
        self, log: EventLog, contents: Contents, identities: Identities, workspaces: Path
    ) -> None:
        self._log = log
        self._contents = contents
        self._identities = identities
        self._workspaces = workspaces
        self._loaded: LoadedConfiguration | None = None
        self._files: dict[int, LoadedConfiguration] = {}
        self._current: PinnedConfiguration | None = None
        self._pinned: dict[int, PinnedConfiguration] = {}
        self._appending: int | None = None

    def current(self) -> PinnedConfiguration:
        """The active revision."""
        assert self._current is not None
        return self._current

    @property
    def loaded(self) -> LoadedConfiguration:
        """The file that this process read last."""
        assert self._loaded is not None
        return self._loaded

    async def activate(self, loaded: LoadedConfiguration, actor: Actor) -> int:
        """Make a file's configuration the active one, unless it is already; gives its revision."""
        for _ in range(ATTEMPTS_MAX):
            last = await self._last()
            key = await self._key()
            text = loaded.stored_text
            if last is not None and last.content.hmac == keyed_hash(key, text.encode()):
                revision = last.revision
                break
            self._appending = (last.revision if last else 0) + 1
            try:
                revision = await self._append(loaded, text, key, last, actor)
                break
            except _ActivatedMeanwhile:
                continue
            finally:
                self._appending = None
        else:
            raise RuntimeError("the configuration changes too fast to be followed")
        self._loaded = loaded
        self._files[revision] = loaded
        pinned = PinnedConfiguration(revision, loaded.configuration, loaded.stored)
        self._pinned[revision] = pinned
        self._adopt(pinned)
        return revision

    async def follow(self, revision: int) -> None:
        """Another process activated this revision."""
        if self._current is not None and revision > self._current.revision:
            # Its own one may be heard of before the append is over; who asked for that tells of it.
            is_own = revision == self._appending
            self._adopt(await self.at(revision))
            if not is_own:
                _log.info("configuration revision %d is active", revision)

    async def at(self, revision: int) -> PinnedConfiguration:
        """A revision of the log, as it was kept."""
        pinned = self._pinned.get(revision)
        if pinned is None:
            pinned = self._pinned[revision] = await self._read(revision)
            while len(self._pinned) > REVISIONS_REMEMBERED_MAX:
                del self._pinned[next(iter(self._pinned))]
        # A later one than the current was seen on the log by whoever asks for it.
        self._adopt(pinned)
        return pinned

    def _adopt(self, pinned: PinnedConfiguration) -> None:
        """Never an earlier one: while an activation is confirmed, a later one may be heard of."""
        if self._current is None or pinned.revision >= self._current.revision:
            self._current = pinned

    def environment_of(self, pinned: PinnedConfiguration, runtime: Runtime) -> Mapping[str, str]:
        """A runtime's own environment with its secrets resolved now."""
        if not isinstance(runtime, CommandRuntime):
            return {}
        source = self.file_of(pinned)
        resolved: dict[str, str] = {}
        for name, value in runtime.env.items():
            try:
                text = source.resolve(value)
            except ConfigurationError as error:
                raise SecretMissing(
                    f"the value of {name} cannot be had: {error}; put it into the environment of"
                    " every server and write ${NAME}"
                ) from error
            is_credential = _is_credential(name, value) or is_evident_secret(text)
            resolved[name] = Credential(text) if is_credential else text
        return resolved

    def file_of(self, pinned: PinnedConfiguration) -> LoadedConfiguration:
        """What the references of a revision are looked up in: a revision of another server's file
        names places, and the same places of our file serve."""
        return self._files.get(pinned.revision, self.loaded)

    def workspace_of(
        self,
        pinned: PinnedConfiguration,
        agent_id: str,
        *,
        recorded: str | None = None,
        requested: str | None = None,
    ) -> str:
        """The folder that a child of this agent works in, with every link resolved; its own need
        not be there."""
        if requested is not None and recorded is not None:
            return resolve_below_recorded(requested, recorded)
        if requested is not None:
            return resolve_below_roots(requested, self._roots(pinned, agent_id))
        if recorded is not None:
            return verify_recorded_workspace(recorded)
        return resolve_own_workspace(self._own_workspace(pinned, agent_id))

    def _own_workspace(self, pinned: PinnedConfiguration, agent_id: str) -> Path:
        given = pinned.configuration.workspace_for(agent_id)
        return self._folder_of(given) if given else self._workspaces / agent_id

    def _roots(self, pinned: PinnedConfiguration, agent_id: str) -> list[Path]:
        configured = pinned.configuration.spawnlog.workspace_roots
        resolve_own_workspace = self._own_workspace(pinned, agent_id)
        return [resolve_own_workspace, *(self._folder_of(root) for root in configured)]

    def _folder_of(self, given: str) -> Path:
        try:
            return self.loaded.path_of(self.loaded.resolve(given))
        except ConfigurationError as error:
            raise WorkspaceUnusable(errno.EINVAL, str(error)) from error

    async def _append(
        self,
        loaded: LoadedConfiguration,
        text: str,
        key: bytes,
        last: ConfigurationActivated | None,
        actor: Actor,
    ) -> int:
        log_id = self._log.log_id
        revision = (last.revision if last else 0) + 1
        new_id: Callable[[], UUID] = self._identities.event_id

        def decide(world: World) -> Decision[int]:
            if world.config_version != revision - 1:
                raise _ActivatedMeanwhile("another configuration was activated")
            keeper = TextStore(log_id, key, new_id)
            event = ConfigurationActivated(
                revision=revision,
                content=keeper.store("configuration", text),
                source=loaded.path.name if loaded.path else "built-in",
                activated_by=actor.name,
            )
            return Decision(
                revision, ((CONFIG_STREAM, event),), keeper.kept, (ContentKey(log_id, key),)
            )

        appended = await self._log.submit(
            Submission(
                command_id=self._identities.event_id(),
                streams=(CONFIG_STREAM,),
                decide=decide,
                provenance=Provenance(actor=actor, config_revision=revision),
            )
        )
        return appended.result

    async def _key(self) -> bytes:
        key = await self._contents.key(self._log.log_id)
        return key if key is not None else self._identities.content_key()

    async def _last(self) -> ConfigurationActivated | None:
        events = await self._log.read(limit=REVISIONS_MAX, types=("ConfigurationActivated",))
        if not events:
            return None
        event = events[-1].event
        assert isinstance(event, ConfigurationActivated)
        return event

    async def _read(self, revision: int) -> PinnedConfiguration:
        events = await self._log.read(limit=revision, types=("ConfigurationActivated",))
        event = events[revision - 1].event
        assert isinstance(event, ConfigurationActivated)
        text = await self._contents.text(event.content)
        if text is None:
            raise RevisionErased(f"the text of configuration revision {revision} was erased")
        stored = orjson.loads(text)
        configuration: Configuration = configuration_from_stored(stored)
        return PinnedConfiguration(revision, configuration, stored)


def _is_credential(name: str, value: str | SecretReference) -> bool:
    """Whether a variable of a runtime, or one that it refers to, is named like a secret."""
    referred = variables_in(value) if isinstance(value, str) else ()
    return any(is_secret_name(one) for one in (name, *referred))
