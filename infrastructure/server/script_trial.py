"""Trial of an agent's context scripts on this machine, without a server or a record."""

import asyncio
import os
from pathlib import Path

from application.context.script_trial import TrialRequest, TrialResult, try_scripts
from application.context.scripts import ContextGatherer
from application.ports.configurations import PinnedConfiguration
from domain.configuration.configuration import Configuration
from domain.values.agent_id import is_valid_agent_id, normalise_agent_id
from domain.values.session_key import InvalidSessionKeyError, agent_id_of
from infrastructure.contract.errors import UserError
from infrastructure.contract.operations import ScriptTrialOptions
from infrastructure.outbound.child_processes.launcher import ProcessLauncher
from infrastructure.outbound.configuration.load import LoadedConfiguration
from infrastructure.outbound.credentials.agent_credentials import AgentCredentials
from infrastructure.outbound.identity.identifiers import RandomIdentities
from infrastructure.outbound.scripts.secrets import ConfiguredSecrets
from infrastructure.server.compose import build_script_runner


class _SingleFile:
    """File lookup that returns the same file for every revision."""

    def __init__(self, loaded: LoadedConfiguration) -> None:
        self._loaded = loaded

    def file_of(self, _pinned: PinnedConfiguration, /) -> LoadedConfiguration:
        return self._loaded


def run_trial(loaded: LoadedConfiguration, tried: ScriptTrialOptions, agents: Path) -> TrialResult:
    """Run the context scripts of an agent and return their results.

    Args:
        loaded: The configuration.
        tried: The spawn to try.
        agents: The directory with the agents' folders.

    Raises:
        UserError: The agent id or the requester is invalid.
    """
    return asyncio.run(_try_scripts(loaded, _trial_request(loaded.configuration, tried), agents))


def _trial_request(configuration: Configuration, tried: ScriptTrialOptions) -> TrialRequest:
    if not is_valid_agent_id(tried.agent):
        raise UserError("AGENT is not a valid agent id")
    try:
        key = configuration.canonical_key(tried.requester)
    except InvalidSessionKeyError as error:
        raise UserError(f"--requester: {error.message}") from error
    return TrialRequest(
        agent_id=normalise_agent_id(tried.agent),
        task=tried.task,
        requester_agent_id=agent_id_of(key),
        requester_key=key,
        label=tried.label,
        cleanup=tried.cleanup,
    )


async def _try_scripts(
    loaded: LoadedConfiguration, request: TrialRequest, agents: Path
) -> TrialResult:
    file = _SingleFile(loaded)
    pinned = PinnedConfiguration(0, loaded.configuration, loaded.stored)
    launcher = ProcessLauncher()
    try:
        scripts = build_script_runner(launcher, file.file_of)
        credentials = AgentCredentials(file, agents)
        secrets = ConfiguredSecrets(file.file_of, os.environ)
        gathering = ContextGatherer(scripts, credentials, secrets)
        return await try_scripts(request, gathering, pinned, RandomIdentities())
    finally:
        await launcher.close()
