"""Faults of values are in plain words, whatever the library says."""

from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from domain.configuration.problems import render_error


def refuse(_: object) -> None:
    raise ValueError("is not this")


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        (Annotated[str, Field(min_length=1)], "", "must not be empty"),
        (Annotated[str, Field(min_length=3)], "a", "must be at least 3 characters long"),
        (Annotated[str, Field(pattern="^a+$")], "b", "must match ^a+$"),
        (Annotated[float, Field(allow_inf_nan=False)], float("inf"), "must be a finite number"),
        (Annotated[int, AfterValidator(refuse)], 1, "is not this"),
        (Literal["a", "b"], "c", 'must be one of "a", "b"'),
        (int, "x", "must be a whole number"),
    ],
)
def test_fault_is_told_in_plain_words(kind: Any, value: object, words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(kind).validate_python(value)
    assert render_error(caught.value.errors()[0])[0] == words
