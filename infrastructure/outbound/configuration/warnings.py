"""Hooks whose address or headers cannot be told here, and that are told over an open line."""

from collections.abc import Callable, Iterator

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
_HOOK_UNRESOLVED = "cannot be told, and this hook fails for it: {why}"
_HOOK_UNUSABLE = "{why}; what it refers to is something else here, and this hook fails for it"
_PLAIN_HTTP = (
    "is plain http to another machine: whoever is between can read and change what the hook is told"
    " and answers; use https"
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
