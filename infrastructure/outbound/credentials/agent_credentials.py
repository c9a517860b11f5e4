"""Credentials of an agent, from its own folder and from the main agent's."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from application.ports.configurations import MissingSecretError, PinnedConfiguration
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
    UnreadableProfilesError,
    identity_of,
    is_there,
    profile_warnings,
    read_profiles,
)
from infrastructure.outbound.credentials.values import UnresolvedProfileError, resolve_profile


def unset_variables(
    runtime: Runtime | None, loaded: LoadedConfiguration
) -> list[MissingCredential]:
    """Return the variables of a runtime that cannot be resolved.

    These are variables that the server's environment lacks, and secrets that are not in the file
    that this server has read.
    """
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
        text = f"{name} of its runtime is not available: {FILE_UNUSABLE}"
        return MissingCredential(name, text)
    if problem.pointer:
        text = f"{name} of its runtime is not in the file that this server has read"
        return MissingCredential(name, text)
    variable = problem.source
    return MissingCredential(variable, f"{variable} is not set", is_unset=True)


CACHED_FILES_MAX = 1_000
_log = logging.getLogger("spawnlog.credentials")


class _Folders:
    """Credential folders: the agent's own, and the main agent's."""

    def __init__(self, own: Path, main: Path | None) -> None:
        self.own, self.main = own, main

    def of(self, found: FoundProfile) -> Path:
        """Return the folder that a profile was found in."""
        return self.own if found.is_own or self.main is None else self.main

    def have_file(self) -> bool:
        """Return True if one of them has a profile file. The check is cheaper than a thread."""
        return is_there(self.own) or (self.main is not None and is_there(self.main))


class AgentCredentials:
    """Implementation of `Credentials`.

    Files are read in threads; if there is no file, no thread is used. The content of a file is
    cached until it changes, without its values.

    Args:
        files: Configuration files by revision.
        agents: Folder for agents without an `agentDir`; theirs is `<agents>/<id>/agent`.
        now: Returns the current time in seconds since 1970.
    """

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
        """Return the profiles found for an agent, and those that cannot be resolved."""
        if agent.is_configured and isinstance(agent.runtime, ModelRuntime):
            # A model gets its key from its configuration, never from a profile.
            missing = unset_variables(agent.runtime, self._files_of_revisions.file_of(pinned))
            return FoundCredentials(missing=tuple(dict.fromkeys(missing)))
        runtime = _runtime_of(agent)
        if runtime is None:
            return NOTHING_FOUND
        loaded = self._files_of_revisions.file_of(pinned)
        missing = unset_variables(runtime, loaded)
        try:
            folders = self._folders(loaded, agent)
        except _FileMissingError as failure:
            return FoundCredentials(missing=(*missing, failure.missing))
        if not folders.have_file():
            return FoundCredentials(missing=tuple(dict.fromkeys(missing)))
        return await asyncio.to_thread(self._find, folders, loaded, agent, runtime, missing)

    async def environment(self, pinned: PinnedConfiguration, agent_id: str) -> Mapping[str, str]:
        """Return the environment of a runtime: its own variables, and the values of the profiles.

        Raises:
            MissingSecretError: A value cannot be resolved.
        """
        loaded = self._files_of_revisions.file_of(pinned)
        agent = pinned.configuration.effective_agent(agent_id)
        given: Mapping[str, Credential] = {}
        if (runtime := _runtime_of(agent)) is not None:
            try:
                folders = self._folders(loaded, agent)
            except _FileMissingError as failure:
                raise _unavailable_error(agent, failure.missing) from None
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
        except _FileMissingError as failure:
            return FoundCredentials(missing=(*missing, failure.missing))
        found = merge_profiles(own.file, main.file)
        chosen = select_profiles(found, runtime.env)
        for found_profile in chosen:
            try:
                # None: texts in the file itself are not checked before they are used.
                resolve_profile(
                    found_profile.profile,
                    folders.of(found_profile),
                    None,
                    now=self._now(),
                    variables=loaded.variables(),
                )
            except UnresolvedProfileError as failure:
                missing.append(failure.missing)
        return FoundCredentials(
            profile_ids=tuple(found_profile.profile.id for found_profile in found),
            given=tuple(found_profile.profile.id for found_profile in chosen),
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
            for found_profile in select_profiles(merge_profiles(own.file, main.file), runtime.env):
                read = own if found_profile.is_own else main
                standing = read.values.get(found_profile.profile.id, "")
                values[found_profile.profile.env_name] = resolve_profile(
                    found_profile.profile,
                    folders.of(found_profile),
                    standing,
                    now=self._now(),
                    variables=loaded.variables(),
                )
        except (_FileMissingError, UnresolvedProfileError) as failure:
            raise _unavailable_error(agent, failure.missing) from None
        return values

    def _files(
        self,
        folders: _Folders,
        agent: EffectiveAgent,
        read: Callable[[Path], LoadedProfiles],
    ) -> tuple[LoadedProfiles, LoadedProfiles]:
        """Return the profiles of the agent and of the main agent. Raise `_FileMissingError`."""
        try:
            own = read(folders.own)
        except UnreadableProfilesError as failure:
            raise _FileMissingError(agent.id, failure) from None
        if folders.main is None:
            return own, LoadedProfiles(ProfileFile())
        try:
            return own, read(folders.main)
        except UnreadableProfilesError as failure:
            raise _FileMissingError(agent.main_folder.agent_id, failure) from None

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
            raise _FileMissingError(folder.agent_id, UnreadableProfilesError(text)) from None

    def _read_folder(self, folder: Path) -> LoadedProfiles:
        """Return the content of a file without its values; read it again if it has changed."""
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


class _FileMissingError(Exception):
    """The profile file of an agent cannot be used."""

    def __init__(self, agent_id: str, failure: UnreadableProfilesError) -> None:
        text = f'{FILE_NAME} of agent "{agent_id}" {failure}'
        super().__init__(text)
        self.missing = MissingCredential(FILE_NAME, text)


def _unavailable_error(agent: EffectiveAgent, missing: MissingCredential) -> MissingSecretError:
    return MissingSecretError(
        f'the credentials of agent "{agent.id}" are no longer available:'
        f" {missing.text}; fix this on every server and spawn again"
    )


def _runtime_of(agent: EffectiveAgent) -> CommandRuntime | None:
    """Return the runtime of a configured agent if it takes credentials, else None."""
    runtime = agent.runtime if agent.is_configured else None
    return runtime if isinstance(runtime, CommandRuntime) else None


def _runtime_environment(runtime: Runtime | None, loaded: LoadedConfiguration) -> Mapping[str, str]:
    """Return the variables of a runtime with secrets resolved."""
    resolved: dict[str, str] = {}
    for name, value in values_of(runtime).items():
        try:
            text = loaded.resolve(value)
        except ConfigurationError as error:
            raise MissingSecretError(
                f"the value of {name} is not available: {error}; put it into the environment of"
                " every server and write ${NAME}"
            ) from error
        is_credential = _is_credential(name, value) or is_evident_secret(text)
        resolved[name] = Credential(text) if is_credential else text
    return resolved


def _is_credential(name: str, value: str | SecretReference) -> bool:
    """Return True if a variable of a runtime, or one that it refers to, is named like a secret."""
    referred = variables_in(value) if isinstance(value, str) else ()
    is_header = is_secret_mapping(name.rpartition(".")[0])
    return is_header or any(is_secret_name(variable) for variable in (name, *referred))
