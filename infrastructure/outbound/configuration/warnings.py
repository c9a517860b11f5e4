"""Warnings that depend on this machine.

They are about hooks, webhooks and models (unresolvable values, unencrypted addresses), about
workspaces (unresolvable folders, roots that permit every folder), and about scripts and commands
that cannot be executed.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from domain.configuration.configuration import Configuration
from domain.configuration.context_scripts import ContextScript, why_no_script_path
from domain.configuration.hooks import (
    HOOKS,
    Hook,
    HooksSection,
    header_problem,
    url_problem,
)
from domain.configuration.model_runtime import ModelRuntime
from domain.configuration.problems import ConfigurationError, pointer_of
from domain.configuration.runtimes import CommandRuntime, Runtime
from domain.configuration.secrets import SecretReference, variables_in
from domain.configuration.warnings import (
    PLAIN_HTTP,
    ConfigurationWarning,
    ValuePath,
    is_unprotected,
)
from domain.configuration.webhooks import AnnounceSection, secret_problem
from domain.values.text import replace_unstorable
from infrastructure.outbound.files.executables import (
    expand_home,
    why_no_command,
    why_not_executable,
)
from infrastructure.outbound.files.workspaces import resolve_own_workspace

ResolveHookSecret = Callable[[str | SecretReference], str]
_HOOK_UNRESOLVED = "cannot be resolved, so this {kind} will fail: {why}"
_HOOK_UNUSABLE = "its resolved value {why}; this {kind} will fail"
_ENV_OF_URL = "has no effect: spawnlog does not start a server that has a url"


def hook_warnings(
    hooks: HooksSection, resolve: ResolveHookSecret
) -> Iterator[ConfigurationWarning]:
    """Yield warnings about `spawnlog.hooks`. They show no address and no value.

    Args:
        hooks: The section.
        resolve: Returns the text of a value, or raises ConfigurationError.
    """
    for name in HOOKS:
        hook = hooks.named(name)
        if hook is not None:
            yield from _endpoint_warnings(("spawnlog", "hooks", name), hook, resolve, "hook")


def webhook_warnings(
    announce: AnnounceSection, resolve: ResolveHookSecret
) -> Iterator[ConfigurationWarning]:
    """Yield warnings about `spawnlog.announce`. They show no address and no value."""
    for index, webhook in enumerate(announce.webhooks):
        place = ("spawnlog", "announce", "webhooks", index)
        yield from _endpoint_warnings(place, webhook, resolve, "webhook")
        for number, secret in enumerate(webhook.secrets):
            pointer = pointer_of((*place, "secrets", number))
            yield from _value_warnings(pointer, secret, resolve, secret_problem, "webhook")


def model_warnings(
    configuration: Configuration, resolve: ResolveHookSecret
) -> Iterator[ConfigurationWarning]:
    """Yield warnings about each runtime of type `model`. They show no address and no value."""
    written: list[tuple[ValuePath, Runtime | None]] = [
        (("agents", "defaults", "runtime"), configuration.defaults.runtime),
        *(((*path, "runtime"), agent.runtime) for path, agent in configuration.agents.placed),
    ]
    for place, runtime in written:
        if isinstance(runtime, ModelRuntime):
            for name, server in runtime.mcp_servers.items():
                if server.env:
                    pointer = pointer_of((*place, "mcpServers", name, "env"))
                    yield ConfigurationWarning(pointer, _ENV_OF_URL)
            for path, value, is_url in runtime.written_values():
                check = _complaint_about_address if is_url else header_problem
                yield from _value_warnings(
                    pointer_of((*place, *path)), value, resolve, check, "runtime"
                )


def _endpoint_warnings(
    place: ValuePath, hook: Hook, resolve: ResolveHookSecret, kind: str
) -> Iterator[ConfigurationWarning]:
    address = pointer_of((*place, "url"))
    yield from _value_warnings(address, hook.url, resolve, _complaint_about_address, kind)
    for header, value in hook.headers.items():
        pointer = pointer_of((*place, "headers", header))
        yield from _value_warnings(pointer, value, resolve, header_problem, kind)


def _complaint_about_address(url: str) -> str | None:
    return url_problem(url) or (PLAIN_HTTP if is_unprotected(url) else None)


def _value_warnings(
    pointer: str,
    value: str | SecretReference,
    resolve: ResolveHookSecret,
    complaint_about: Callable[[str], str | None],
    kind: str,
) -> Iterator[ConfigurationWarning]:
    try:
        complaint = complaint_about(resolve(value))
    except ConfigurationError as error:
        yield ConfigurationWarning(pointer, _HOOK_UNRESOLVED.format(why=error, kind=kind))
        return
    if complaint is PLAIN_HTTP:
        yield ConfigurationWarning(pointer, complaint)
    elif complaint is not None:
        yield ConfigurationWarning(pointer, _HOOK_UNUSABLE.format(why=complaint, kind=kind))


_ROOT_IS_WHOLE_MACHINE = (
    "is the root folder, so a request may name any folder as its requester's workspace; list"
    " specific folders"
)
_ROOT_UNRESOLVED = "cannot be resolved, so requests that name a workspace are refused: {why}"
_WORKSPACE_UNUSABLE = "cannot be {done}, so a spawn that would work there is refused: {why}"


def workspace_root_warnings(
    roots: Sequence[str], place: Callable[[str], Path]
) -> Iterator[ConfigurationWarning]:
    """Yield warnings about `spawnlog.workspaceRoots`.

    Args:
        roots: The configured roots.
        place: Returns the folder of a root, or raises ConfigurationError.
    """
    for index, root in enumerate(roots):
        pointer = pointer_of(("spawnlog", "workspaceRoots", index))
        try:
            folder = os.path.realpath(place(root))
        except (ConfigurationError, ValueError) as error:
            yield ConfigurationWarning(pointer, _ROOT_UNRESOLVED.format(why=error))
            continue
        if folder == os.path.realpath(os.sep):
            yield ConfigurationWarning(pointer, _ROOT_IS_WHOLE_MACHINE)


def agent_workspace_warnings(
    configuration: Configuration, place: Callable[[str], Path]
) -> Iterator[ConfigurationWarning]:
    """Yield a warning for each agent workspace that cannot be resolved or used here."""
    default = configuration.agent(configuration.default_agent_id)
    shared = configuration.defaults.workspace
    # The default workspace is only for the default agent, if that has none of its own.
    if shared is not None and (default is None or default.workspace is None):
        yield from _workspace_warnings(
            pointer_of(("agents", "defaults", "workspace")), shared, place
        )
    for path, agent in configuration.agents.placed:
        if agent.workspace is not None:
            pointer = pointer_of((*path, "workspace"))
            yield from _workspace_warnings(pointer, agent.workspace, place)


def _workspace_warnings(
    pointer: str, workspace: str, place: Callable[[str], Path]
) -> Iterator[ConfigurationWarning]:
    try:
        resolve_own_workspace(place(workspace))
    except ConfigurationError as error:
        yield ConfigurationWarning(pointer, _WORKSPACE_UNUSABLE.format(done="resolved", why=error))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "invalid path"
        yield ConfigurationWarning(pointer, _WORKSPACE_UNUSABLE.format(done="used", why=why))


_SCRIPT_FAILS = "{why}; this script fails for every spawn of {agent}"
_COMMAND_FAILS = "{why}; every run of {agent} fails"


def executable_warnings(
    configuration: Configuration,
    resolve: ResolveHookSecret,
    folder: Path,
    server: Mapping[str, str] = os.environ,
) -> Iterator[ConfigurationWarning]:
    """Yield warnings about context scripts and commands that this machine cannot execute.

    They show no value of a variable.

    Args:
        configuration: The configuration.
        resolve: Returns the text of a value, or raises ConfigurationError.
        folder: Folder of the configuration file.
        server: Environment of the server.
    """
    defaults, shared = configuration.defaults, configuration.subagent_defaults
    for at, script in enumerate(shared.context_scripts.run):
        path: ValuePath = ("agents", "defaults", "subagents", "contextScripts", "run", at)
        yield from _script_warnings(path, script, "every agent", resolve, folder, server)
    path = ("agents", "defaults", "runtime")
    others = "an agent without a runtime of its own"
    yield from _command_warnings(path, defaults.runtime, others, resolve, server)
    for place, agent in configuration.agents.placed:
        name = f'agent "{agent.id}"'
        for at, script in enumerate(agent.subagents.context_scripts.run):
            path = (*place, "subagents", "contextScripts", "run", at)
            yield from _script_warnings(path, script, name, resolve, folder, server)
        yield from _command_warnings((*place, "runtime"), agent.runtime, name, resolve, server)


def _script_warnings(
    place: ValuePath,
    script: ContextScript,
    agent: str,
    resolve: ResolveHookSecret,
    folder: Path,
    server: Mapping[str, str],
) -> Iterator[ConfigurationWarning]:
    if script.is_remote:
        return
    try:
        uri = resolve(script.uri)
    except ConfigurationError:
        # Reported with the unset variables.
        return
    path = os.path.join(folder, expand_home(uri, server))
    shown = script.uri if variables_in(script.uri) else replace_unstorable(path)
    why = why_no_script_path(uri) or why_not_executable(path, shown)
    if why is not None:
        pointer = pointer_of((*place, "uri"))
        yield ConfigurationWarning(pointer, _SCRIPT_FAILS.format(why=why, agent=agent))


def _command_warnings(
    place: ValuePath,
    runtime: Runtime | None,
    agent: str,
    resolve: ResolveHookSecret,
    server: Mapping[str, str],
) -> Iterator[ConfigurationWarning]:
    if not isinstance(runtime, CommandRuntime):
        return
    try:
        own = {name: resolve(value) for name, value in runtime.env.items() if name == "PATH"}
    except ConfigurationError:
        return
    program = expand_home(runtime.command[0], server)
    why = why_no_command(program, {**server, **own})
    if why is not None:
        pointer = pointer_of((*place, "command", 0))
        message = _COMMAND_FAILS.format(why=replace_unstorable(why), agent=agent)
        yield ConfigurationWarning(pointer, message)
