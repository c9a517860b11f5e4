"""Warnings about hooks (an address or headers that cannot be told here, an open line) and about
folders for children (that cannot be told here, roots that hold back nothing)."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from domain.configuration.configuration import Configuration
from domain.configuration.hooks import (
    HOOKS,
    AnyHook,
    Hook,
    HooksSection,
    header_problem,
    url_problem,
)
from domain.configuration.problems import ConfigurationError, pointer_of
from domain.configuration.secrets import SecretReference
from domain.configuration.warnings import ConfigurationWarning, is_unprotected

ResolveHookSecret = Callable[[str | SecretReference], str]
_HOOK_UNRESOLVED = "cannot be resolved, and this hook fails for it: {why}"
_HOOK_UNUSABLE = "{why}; what it refers to is something else here, and this hook fails for it"
_PLAIN_HTTP = (
    "is plain http to another machine: any machine between can read and change requests and"
    " answers; use https"
)


def hook_warnings(
    hooks: HooksSection, resolve: ResolveHookSecret
) -> Iterator[ConfigurationWarning]:
    """What is doubtful about `spawnlog.hooks` here and now; `resolve` gives the text that is
    meant, or raises ConfigurationError. No address and no value is shown."""
    for name in HOOKS:
        hook = hooks.named(name)
        if hook is not None:
            yield from _address_warnings(name, hook, resolve)
            for header, value in hook.headers.items():
                yield from _value_warnings(
                    name, ("headers", header), value, resolve, header_problem
                )


def _address_warnings(
    name: AnyHook, hook: Hook, resolve: ResolveHookSecret
) -> Iterator[ConfigurationWarning]:
    yield from _value_warnings(name, ("url",), hook.url, resolve, _complaint_about_address)


def _complaint_about_address(url: str) -> str | None:
    return url_problem(url) or (_PLAIN_HTTP if is_unprotected(url) else None)


def _value_warnings(
    name: AnyHook,
    place: tuple[str, ...],
    value: str | SecretReference,
    resolve: ResolveHookSecret,
    complaint_about: Callable[[str], str | None],
) -> Iterator[ConfigurationWarning]:
    pointer = pointer_of(("spawnlog", "hooks", name, *place))
    try:
        complaint = complaint_about(resolve(value))
    except ConfigurationError as error:
        yield ConfigurationWarning(pointer, _HOOK_UNRESOLVED.format(why=error))
        return
    if complaint is not None:
        yield ConfigurationWarning(
            pointer, complaint if complaint is _PLAIN_HTTP else _HOOK_UNUSABLE.format(why=complaint)
        )


_ROOT_IS_WHOLE_MACHINE = (
    "is the whole machine: a request may name any folder as its requester's workspace; write the "
    "folders that are meant"
)
_ROOT_UNRESOLVED = (
    "cannot be resolved, and requests that name a workspace are refused for it: {why}"
)
_WORKSPACE_UNRESOLVED = "cannot be resolved, and a spawn that would work there is refused: {why}"


def workspace_root_warnings(
    roots: Sequence[str], place: Callable[[str], Path]
) -> Iterator[ConfigurationWarning]:
    """What is doubtful about `spawnlog.workspaceRoots` here and now; `place` tells the folder that
    a root means, or raises ConfigurationError."""
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
    """The workspaces of agents that cannot be told here and now, each where it stands."""
    default = configuration.agent(configuration.default_agent_id)
    shared = configuration.defaults.workspace
    # That of the defaults is for the default agent alone, where it has none of its own.
    if shared is not None and (default is None or default.workspace is None):
        yield from _unresolved_warnings(
            pointer_of(("agents", "defaults", "workspace")), shared, place
        )
    for index, agent in enumerate(configuration.agents.list):
        if agent.workspace is not None:
            pointer = pointer_of(("agents", "list", index, "workspace"))
            yield from _unresolved_warnings(pointer, agent.workspace, place)


def _unresolved_warnings(
    pointer: str, workspace: str, place: Callable[[str], Path]
) -> Iterator[ConfigurationWarning]:
    try:
        place(workspace)
    except ConfigurationError as error:
        yield ConfigurationWarning(pointer, _WORKSPACE_UNRESOLVED.format(why=error))
