"""Groups of options: a dataclass that several commands take, declared once."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from functools import wraps
from typing import Any


def flat_command(command: Callable[..., None]) -> Callable[..., None]:
    """The command as the command line knows it: in the place of each parameter whose type is a
    dataclass, an option for each of its fields, with the field's annotation and default."""
    groups: dict[str, tuple[type, Mapping[str, inspect.Parameter]]] = {}
    options: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        group = parameter.annotation
        if is_dataclass(group) and isinstance(group, type):
            groups[parameter.name] = group, inspect.signature(group).parameters
            options += groups[parameter.name][1].values()
        else:
            options.append(parameter)
    if not groups:
        return command

    @wraps(command)
    def grouped(**given: Any) -> None:
        for name, (group, fields) in groups.items():
            given[name] = group(**{field: given.pop(field) for field in fields})
        command(**given)

    by_name = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in options]
    vars(grouped)["__signature__"] = inspect.Signature(by_name)
    grouped.__annotations__ = {one.name: one.annotation for one in by_name}
    return grouped
