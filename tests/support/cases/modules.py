"""Test modules that run cases, found by their names and read by their declarations."""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.support.cases.cases import FOLDER, Case, Runner


@dataclass(frozen=True)
class CaseModule:
    """A module: its path in the project, its runners by area, and the cases of its tests."""

    path: str
    runners: Mapping[str, Runner]
    cases: tuple[Case, ...]


def case_modules() -> tuple[CaseModule, ...]:
    """Return every `tests/cases/test_*_cases.py`."""
    return tuple(_module(path.stem) for path in sorted(FOLDER.glob("test_*_cases.py")))


def _module(name: str) -> CaseModule:
    module = importlib.import_module(f"tests.cases.{name}")
    tests = [variable for called, variable in vars(module).items() if called.startswith("test_")]
    return CaseModule(
        path=f"tests/cases/{name}.py",
        runners=module.RUNNERS,
        cases=tuple(case for test in tests for case in _parameters(test)),
    )


def _parameters(test: Any) -> list[Case]:
    """Return the parameters of a test, from its mark."""
    marks = [mark for mark in getattr(test, "pytestmark", ()) if mark.name == "parametrize"]
    values = [value for mark in marks for value in mark.args[1]]
    return [value for item in values for value in item.values if isinstance(value, Case)]
