"""Groups of options: declared once, and taken by several commands."""

import inspect
from collections.abc import Callable
from dataclasses import is_dataclass
from functools import wraps
from typing import Annotated, Any, get_args, get_origin

from infrastructure.inbound.command_line.client.described import Given, OptionsOf


def flat_command(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command as the command line knows it.

    In the place of each parameter whose type is a dataclass it has an option for each of its
    fields, with the field's annotation and default. In the place of `Given` with `OptionsOf` it has
    the options of that operation.
    """
    groups: dict[str, tuple[list[str], Callable[..., Any]]] = {}
    options: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        group = _group(parameter.annotation)
        if group is None:
            options.append(parameter)
        else:
            own, make = group
            groups[parameter.name] = [one.name for one in own], make
            options += own
    if not groups:
        return command

    @wraps(command)
    def grouped(**given: Any) -> None:
        for name, (own, make) in groups.items():
            given[name] = make(**{one: given.pop(one) for one in own})
        command(**given)

    by_name = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in options]
    vars(grouped)["__signature__"] = inspect.Signature(by_name)
    grouped.__annotations__ = {one.name: one.annotation for one in by_name}
    return grouped


def _group(annotation: Any) -> tuple[list[inspect.Parameter], Callable[..., Any]] | None:
    """Return the options in the place of a parameter, and what makes its value of theirs."""
    if is_dataclass(annotation) and isinstance(annotation, type):
        return list(inspect.signature(annotation).parameters.values()), annotation
    if get_origin(annotation) is not Annotated:
        return None
    described = next((one for one in get_args(annotation) if isinstance(one, OptionsOf)), None)
    if described is None:
        return None
    parameters = described.parameters()
    names = {one.identifier: one.name for one in parameters}

    def make(**given: Any) -> Given:
        return Given(parameters, {names[one]: value for one, value in given.items()})

    return [one.declared() for one in parameters], make
