"""Credentials by agent id, from the folders of the agents and of the main one."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from application.ports.configurations import PinnedConfiguration, SecretMissing
from application.ports.credentials import Credential
from domain.configuration.configuration import AgentFolder, EffectiveAgent
from domain.configuration.model_runtime import ModelRuntime
from domain.configuration.problems import ConfigurationError, ConfigurationProblem
from domain.configuration.runtimes import CommandRuntime, Runtime, values_of
from domain.configuration.secrets import (
    SecretReference,
    is_secret_mapping,
    is_secret_name,
    variables_in,
)
from domain.plan.credentials import (
    NOTHING_FOUND,
    FoundCredentials,
    FoundProfile,
    MissingCredential,
    ProfileFile,
    merge_profiles,
    select_profiles,
)
from infrastructure.outbound.configuration.files import RevisionFiles
from infrastructure.outbound.configuration.load import FILE_UNUSABLE, LoadedConfiguration
from infrastructure.outbound.configuration.secrets import is_evident_secret
from infrastructure.outbound.credentials.auth_profiles import (
    FILE_NAME,
    LoadedProfiles,
    ProfilesUnreadable,
    identity_of,
    is_there,
    profile_warnings,
    read_profiles,
)
from infrastructure.outbound.credentials.values import ProfileUnresolved, resolve_profile


def unset_variables(
    runtime: Runtime | None, loaded: LoadedConfiguration
) -> list[MissingCredential]:
    """Each variable of the server that is not set, and each of the runtime whose value stands in
    another file than the one that was read here."""
    missing: list[MissingCredential] = []
    for name, value in values_of(runtime).items():
        try:
            loaded.resolve(value)
        except ConfigurationError as failure:
            missing += [_missing_variable(name, problem, loaded) for problem in failure.problems]
    return missing


def _missing_variable(
    name: str, problem: ConfigurationProblem, loaded: LoadedConfiguration
) -> MissingCredential:
    if problem.pointer and loaded.missing is not None:
        text = f"{name} of its runtime cannot be had: {FILE_UNUSABLE}"
        return MissingCredential(name, text)
    if problem.pointer:
        text = f"{name} of its runtime stands in another file than the one this server has read"
        return MissingCredential(name, text)
    variable = problem.source
    return MissingCredential(variable, f"{variable} is not set", is_unset=True)


CACHED_FILES_MAX = 1_000
_log = logging.getLogger("spawnlog.credentials")


class _Folders:
    """The folders of an agent and of the main one, and what their files say."""

    def __init__(self, own: Path, main: Path | None) -> None:
        self.own, self.main = own, main

    def of(self, found: FoundProfile) -> Path:
        """The folder whose file a profile is of."""
        return self.own if found.is_own or self.main is None else self.main

    def have_file(self) -> bool:
        """Return whether one of them has a file of profiles. A thread costs more than to look."""
        return is_there(self.own) or (self.main is not None and is_there(self.main))


class AgentCredentials:
    """Implements `Credentials`. `agents` is the folder of agents that were given no `agentDir`:
    theirs is `<agents>/<id>/agent`. Files are read in threads, and where none is there no thread is
    asked; what they say is kept until they change, and values never."""

    def __init__(
        self,
        files: RevisionFiles,
        agents: Path,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._files_of_revisions = files
        self._agents = agents
        self._now = now
        self._cache: dict[Path, LoadedProfiles] = {}

    async def found(self, pinned: PinnedConfiguration, agent: EffectiveAgent) -> FoundCredentials:
        """What there is now, and what of it cannot be resolved."""
        if agent.is_configured and isinstance(agent.runtime, ModelRuntime):
            # It is told its key by its configuration, and by no profile.
            missing = unset_variables(agent.runtime, self._files_of_revisions.file_of(pinned))
            return FoundCredentials(missing=tuple(dict.fromkeys(missing)))
        runtime = _runtime_of(agent)
        if runtime is None:
            return NOTHING_FOUND
        loaded = self._files_of_revisions.file_of(pinned)
        missing = unset_variables(runtime, loaded)
        try:
            folders = self._folders(loaded, agent)
        except _FileMissing as failure:
            return FoundCredentials(missing=(*missing, failure.missing))
        if not folders.have_file():
            return FoundCredentials(missing=tuple(dict.fromkeys(missing)))
        return await asyncio.to_thread(self._find, folders, loaded, agent, runtime, missing)

    async def environment(self, pinned: PinnedConfiguration, agent_id: str) -> Mapping[str, str]:
        """What the runtime sets, and the values of the profiles. Raises `SecretMissing`."""
        loaded = self._files_of_revisions.file_of(pinned)
        agent = pinned.configuration.effective_agent(agent_id)
        given: Mapping[str, Credential] = {}
        if (runtime := _runtime_of(agent)) is not None:
            try:
                folders = self._folders(loaded, agent)
            except _FileMissing as failure:
                raise _gone(agent, failure.missing) from None
            if folders.have_file():
                given = await asyncio.to_thread(self._resolve, folders, loaded, agent, runtime)
        return {**given, **_runtime_environment(agent.runtime, loaded)}

    def _find(
        self,
        folders: _Folders,
        loaded: LoadedConfiguration,
        agent: EffectiveAgent,
        runtime: CommandRuntime,
        unset: Sequence[MissingCredential],
    ) -> FoundCredentials:
        missing = list(unset)
        try:
            own, main = self._files(folders, agent, self._read_folder)
        except _FileMissing as failure:
            return FoundCredentials(missing=(*missing, failure.missing))
        found = merge_profiles(own.file, main.file)
        chosen = select_profiles(found, runtime.env)
        for one in chosen:
            try:
                # What stands in the file itself is not looked at before it is used.
                resolve_profile(
                    one.profile,
                    folders.of(one),
                    None,
                    now=self._now(),
                    variables=loaded.variables(),
                )
            except ProfileUnresolved as failure:
                missing.append(failure.missing)
        return FoundCredentials(
            profile_ids=tuple(one.profile.id for one in found),
            given=tuple(one.profile.id for one in chosen),
            missing=tuple(dict.fromkeys(missing)),
        )

    def _resolve(
        self,
        folders: _Folders,
        loaded: LoadedConfiguration,
        agent: EffectiveAgent,
        runtime: CommandRuntime,
    ) -> Mapping[str, Credential]:
        try:
            own, main = self._files(folders, agent, read_profiles)
            values: dict[str, Credential] = {}
            for one in select_profiles(merge_profiles(own.file, main.file), runtime.env):
                read = own if one.is_own else main
                standing = read.values.get(one.profile.id, "")
                values[one.profile.env_name] = resolve_profile(
                    one.profile,
                    folders.of(one),
                    standing,
                    now=self._now(),
                    variables=loaded.variables(),
                )
        except (_FileMissing, ProfileUnresolved) as failure:
            raise _gone(agent, failure.missing) from None
        return values

    def _files(
        self,
        folders: _Folders,
        agent: EffectiveAgent,
        read: Callable[[Path], LoadedProfiles],
    ) -> tuple[LoadedProfiles, LoadedProfiles]:
        """The file of the agent and that of the main one. Raises `_FileMissing`."""
        try:
            own = read(folders.own)
        except ProfilesUnreadable as failure:
            raise _FileMissing(agent.id, failure) from None
        if folders.main is None:
            return own, LoadedProfiles(ProfileFile())
        try:
            return own, read(folders.main)
        except ProfilesUnreadable as failure:
            raise _FileMissing(agent.main_folder.agent_id, failure) from None

    def _folders(self, loaded: LoadedConfiguration, agent: EffectiveAgent) -> _Folders:
        own = self._folder(loaded, agent.folder)
        is_main = agent.main_folder == agent.folder
        main = None if is_main else self._folder(loaded, agent.main_folder)
        return _Folders(own, main if main != own else None)

    def _folder(self, loaded: LoadedConfiguration, folder: AgentFolder) -> Path:
        if folder.path is None:
            return self._agents / folder.agent_id / "agent"
        try:
            return loaded.place(folder.path)
        except ConfigurationError as failure:
            problem = failure.problems[0]
            text = f"cannot be found: its agentDir: {problem.source} {problem.message}"
            raise _FileMissing(folder.agent_id, ProfilesUnreadable(text)) from None

    def _read_folder(self, folder: Path) -> LoadedProfiles:
        """What a file says without its values, read again when it has changed."""
        identity = identity_of(folder)
        cached = self._cache.get(folder)
        if cached is not None and identity is not None and cached.identity == identity:
            return cached
        read = replace(read_profiles(folder), values={})
        if len(self._cache) >= CACHED_FILES_MAX:
            self._cache.clear()
        self._cache[folder] = read
        for complaint in profile_warnings(read):
            _log.warning("%s %s", folder / FILE_NAME, complaint)
        return read


class _FileMissing(Exception):
    """The file of an agent cannot be used."""

    def __init__(self, agent_id: str, failure: ProfilesUnreadable) -> None:
        text = f'{FILE_NAME} of agent "{agent_id}" {failure}'
        super().__init__(text)
        self.missing = MissingCredential(FILE_NAME, text)


def _gone(agent: EffectiveAgent, missing: MissingCredential) -> SecretMissing:
    return SecretMissing(
        f'the credentials of agent "{agent.id}" cannot be had any more:'
        f" {missing.text}; mend it on every server and spawn again"
    )


def _runtime_of(agent: EffectiveAgent) -> CommandRuntime | None:
    """The runtime of a configured agent when it is one that is given credentials."""
    runtime = agent.runtime if agent.is_configured else None
    return runtime if isinstance(runtime, CommandRuntime) else None


def _runtime_environment(runtime: Runtime | None, loaded: LoadedConfiguration) -> Mapping[str, str]:
    """A runtime's own environment with its secrets resolved now."""
    resolved: dict[str, str] = {}
    for name, value in values_of(runtime).items():
        try:
            text = loaded.resolve(value)
        except ConfigurationError as error:
            raise SecretMissing(
                f"the value of {name} cannot be had: {error}; put it into the environment of"
                " every server and write ${NAME}"
            ) from error
        is_credential = _is_credential(name, value) or is_evident_secret(text)
        resolved[name] = Credential(text) if is_credential else text
    return resolved


def _is_credential(name: str, value: str | SecretReference) -> bool:
    """Whether a variable of a runtime, or one that it refers to, is named like a secret."""
    referred = variables_in(value) if isinstance(value, str) else ()
    is_header = is_secret_mapping(name.rpartition(".")[0])
    return is_header or any(is_secret_name(one) for one in (name, *referred))
