"""Values of options, read without a model where none is needed."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any


def read_plainly(parameters: Iterable[Any]) -> None:
    """Have parameters of Typer read their values without Pydantic, if nothing was given or what was
    given is of the type already: that library takes as long to load as half of a command."""
    for one in parameters:
        if isinstance(getattr(one.get_runtime_param, "func", None), type):
            continue
        one.get_runtime_param = partial(_PlainCoercion, one.get_runtime_param)


class _PlainCoercion:
    """Reading of a value as Typer does it; `model` gives what reads one that has to be parsed."""

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
