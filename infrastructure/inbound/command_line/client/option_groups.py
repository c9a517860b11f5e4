"""Groups of options that are declared once and used by several commands."""

import inspect
from collections.abc import Callable
from dataclasses import is_dataclass
from functools import wraps
from typing import Annotated, Any, get_args, get_origin

from infrastructure.inbound.command_line.client.described import OperationOptions, OptionsOf


def flat_command(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with flat options, in the form that Typer expects.

    A parameter whose type is a dataclass becomes one option per field, with the field's annotation
    and default. An `OperationOptions` parameter with `OptionsOf` becomes the options of that
    operation.
    """
    groups: dict[str, tuple[list[str], Callable[..., Any]]] = {}
    options: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        group = _group(parameter.annotation)
        if group is None:
            options.append(parameter)
        else:
            own, make = group
            groups[parameter.name] = [option.name for option in own], make
            options += own
    if not groups:
        return command

    @wraps(command)
    def grouped(**given: Any) -> None:
        for name, (own, make) in groups.items():
            given[name] = make(**{option: given.pop(option) for option in own})
        command(**given)

    by_name = [option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for option in options]
    vars(grouped)["__signature__"] = inspect.Signature(by_name)
    grouped.__annotations__ = {option.name: option.annotation for option in by_name}
    return grouped


def _group(annotation: Any) -> tuple[list[inspect.Parameter], Callable[..., Any]] | None:
    """Return the options that replace a parameter, and a function from their values to its own."""
    if is_dataclass(annotation) and isinstance(annotation, type):
        return list(inspect.signature(annotation).parameters.values()), annotation
    if get_origin(annotation) is not Annotated:
        return None
    described = next((part for part in get_args(annotation) if isinstance(part, OptionsOf)), None)
    if described is None:
        return None
    parameters = described.parameters()
    names = {parameter.identifier: parameter.name for parameter in parameters}

    def make(**given: Any) -> OperationOptions:
        return OperationOptions(
            parameters, {names[option]: value for option, value in given.items()}
        )

    return [parameter.declared() for parameter in parameters], make
