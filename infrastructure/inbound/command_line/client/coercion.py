"""Coercion of option values that avoids loading Pydantic."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any


def read_plainly(parameters: Iterable[Any]) -> None:
    """Make parameters of Typer read simple values without Pydantic.

    It is avoided for a missing value, and for one of the right type: loading it takes as long as
    half of a command.
    """
    for parameter in parameters:
        if isinstance(getattr(parameter.get_runtime_param, "func", None), type):
            continue
        parameter.get_runtime_param = partial(_PlainCoercion, parameter.get_runtime_param)


class _PlainCoercion:
    """Coercion like Typer's. `model` returns Typer's own, for values that must be parsed."""

    def __init__(self, model: Callable[[], Any]) -> None:
        self._model = model

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the value of a parameter. Raise BadParameter if it cannot be parsed."""
        descriptor = param.type_descriptor
        is_parsed = (
            descriptor.parameter_info.parser is None and type(value) is descriptor.annotation
        )
        is_list = param.multiple or param.nargs == -1
        if is_parsed or (value is None and not is_list):
            return value
        return () if value is None else self._model().coerce(value, param=param, ctx=ctx)
