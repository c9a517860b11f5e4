"""Hooks whose address or headers cannot be told here, and that are told over an open line."""

from collections.abc import Callable, Iterator

from domain.configuration.doubts import Doubt
from domain.configuration.hooks import HOOKS, AnyHook, Hook, Hooks, header_complaint, url_complaint
from domain.configuration.problems import ConfigurationError, pointer_of
from domain.configuration.references import SecretReference
from domain.configuration.script_doubts import is_open

Resolve = Callable[[str | SecretReference], str]

_UNTOLD = "cannot be told, and this hook fails for it: {why}"
_UNFIT = "{why}; what it refers to is something else here, and this hook fails for it"
_PLAIN = (
    "is plain http to another machine: whoever is between can read and change what the hook is told"
    " and answers; use https"
)


def doubtful_hooks(hooks: Hooks, resolve: Resolve) -> Iterator[Doubt]:
    """What is doubtful about `spawnlog.hooks` here and now; `resolve` gives the text that is
    meant, or raises ConfigurationError. No address and no value is shown."""
    for name in HOOKS:
        hook = hooks.named(name)
        if hook is not None:
            yield from _about_address(name, hook, resolve)
            for header, value in hook.headers.items():
                yield from _about(name, ("headers", header), value, resolve, header_complaint)


def _about_address(name: AnyHook, hook: Hook, resolve: Resolve) -> Iterator[Doubt]:
    yield from _about(name, ("url",), hook.url, resolve, _complaint_about_address)


def _complaint_about_address(url: str) -> str | None:
    return url_complaint(url) or (_PLAIN if is_open(url) else None)


def _about(
    name: AnyHook,
    place: tuple[str, ...],
    value: str | SecretReference,
    resolve: Resolve,
    complaint_about: Callable[[str], str | None],
) -> Iterator[Doubt]:
    pointer = pointer_of(("spawnlog", "hooks", name, *place))
    try:
        complaint = complaint_about(resolve(value))
    except ConfigurationError as error:
        yield Doubt(pointer, _UNTOLD.format(why=error))
        return
    if complaint is not None:
        yield Doubt(pointer, complaint if complaint is _PLAIN else _UNFIT.format(why=complaint))
