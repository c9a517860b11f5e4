"""Cases of behavior from other sources: given values, and expected ones.

They are in `tests/cases/data/<first word of the area>.json`, unchanged; those that are not run are
in `tests/cases/not_run.json`, each with its reason.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "cases"
Given = Mapping[str, Any]
Answer = Mapping[str, Any]
Runner = Callable[[Given], Answer]


"""Executes a case and answers in the words of its `expect`."""


@dataclass(frozen=True)
class Case:
    """One case. Area and name are unique together."""

    area: str
    name: str
    source_file: str
    given: Given
    expect: Mapping[str, Any]
    note: str | None = None

    def __str__(self) -> str:
        return f"{self.area}: {self.name}"


@dataclass(frozen=True)
class NotRun:
    """A case that is not run, with the reason. `decided_in` are numbers of decision records;
    `comes_with` names the missing feature.
    """

    area: str
    name: str
    because: str
    reason: str
    decided_in: tuple[str, ...] = ()
    comes_with: str | None = None

    def __str__(self) -> str:
        return f"{self.area}: {self.name}"


@dataclass(frozen=True)
class UnreadLeaf:
    """A value that a case expects and that its runner does not answer, and why not. `leaf` is the
    way to it through `expect`, with dots."""

    area: str
    name: str
    leaf: str
    reason: str

    @property
    def case(self) -> str:
        """Return the case as area and name."""
        return f"{self.area}: {self.name}"


def _read() -> tuple[Case, ...]:
    cases: list[Case] = []
    for path in sorted((FOLDER / "data").glob("*.json")):
        for entry in json.loads(path.read_text("utf-8")):
            case = Case(**entry)
            assert case.area.partition(".")[0] == path.stem, f"{case} stands in {path.name}"
            cases.append(case)
    return tuple(cases)


def _list() -> Mapping[str, list[dict[str, Any]]]:
    listed: dict[str, list[dict[str, Any]]] = json.loads(
        (FOLDER / "not_run.json").read_text("utf-8")
    )
    return listed


CASES = _read()
NOT_RUN = tuple(
    NotRun(**{**row, "decided_in": tuple(row.get("decided_in", ()))}) for row in _list()["cases"]
)
UNREAD = tuple(UnreadLeaf(**row) for row in _list()["leaves"])


BY_A_SERVER = frozenset(
    {
        "admission.params: error results echo the requested agentId as role",
        "admission.params: runtime enum without ACP backend",
        "admission.params: unknown cleanup value falls back to keep",
        "admission.params: unknown sandbox value falls back to inherit",
        "admission.params: unsupported key channel throws",
        "admission.params: unsupported key replyTo throws",
        "admission.params: unsupported key target throws",
        "admission.params: unsupported key thread_id throws",
        "admission.params: unsupported key to throws",
        "admission.timeout: legacy timeoutSeconds alias",
        "admission.timeout: runTimeoutSeconds arg='30' config=600",
        "admission.timeout: runTimeoutSeconds arg=0 config=600",
        "admission.timeout: runTimeoutSeconds arg=None config=None",
        "control.kill: kill of a stale record",
        "control.kill: leaf caller",
        "control.steer: self steer",
        "control.steer: steer an ended run that still has descendants",
        "list: empty text has both headings",
        "list: long task truncated",
    }
)
"""Cases about the text of a tool, which need a server."""


def cases_of(areas: Iterable[str], *, by_a_server: bool = False) -> list[Any]:
    """Return the cases of these areas that are run, as parameters of a test: those that need a
    server, or the others.
    """
    wanted, listed = set(areas), {str(item) for item in NOT_RUN}
    return [
        pytest.param(case, id=str(case))
        for case in CASES
        if case.area in wanted
        and str(case) not in listed
        and (str(case) in BY_A_SERVER) == by_a_server
    ]


def unread_leaves(case: Case) -> frozenset[str]:
    """Return the paths to the values that the runner of a case does not answer."""
    return frozenset(item.leaf for item in UNREAD if item.case == str(case))
