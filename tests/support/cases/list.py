"""Writes `docs/cases.md` from the cases, their runners and the list of those that are not run.

`python -m tests.support.cases.list` writes it anew.
"""

import inspect
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.support.cases.cases import CASES, NOT_RUN, UNREAD, NotRun
from tests.support.cases.modules import CaseModule, case_modules

ROOT = Path(__file__).parents[3]
DOCUMENT = ROOT / "docs" / "cases.md"
_HEAD = """# Cases

What OpenClaw does when it spawns sub-agents, in {all} cases: what is given, and what is expected
of it. They stand in `tests/cases/data/` as they were taken, each with the file it comes from.
{run} are run by the tests below; {listed} are not, and this page says why. It is written by
`python -m tests.support.cases.list`, and a test fails when it is stale.

A runner does what a case describes with the code that a server uses, and answers in the words of
the case; one comparison holds the answer against every value that is expected. That each of them is
compared is tested by making it wrong.

## What is run

| areas, and how many cases | run by | how they are read here |
|---|---|---|
"""


def rendered() -> str:
    """The page."""
    modules = case_modules()
    run = sum(len(module.cases) for module in modules)
    head = _HEAD.format(all=len(CASES), run=run, listed=len(NOT_RUN))
    rows = sorted(row for module in modules for row in _run_rows(module))
    return "\n".join((head + "\n".join(rows), *_not_compared(), *_not_run())) + "\n"


def _run_rows(module: CaseModule) -> Iterable[str]:
    counts = Counter(case.area for case in module.cases)
    read_as: dict[str, list[str]] = {}
    for area, runner in module.runners.items():
        told = " ".join((inspect.getdoc(runner) or "").split())
        read_as.setdefault(told, []).append(f"{area} {counts[area]}")
    for told, areas in read_as.items():
        yield f"| {', '.join(areas)} | `{module.path}` | {_cell(told)} |"


def _not_compared() -> Iterable[str]:
    yield "\n## What of a case that is run is not compared\n"
    yield "| area | case | value | why not |\n|---|---|---|---|"
    for leaf in UNREAD:
        yield f"| {leaf.area} | {_cell(leaf.name)} | `{leaf.leaf}` | {_cell(leaf.reason)} |"


def _not_run() -> Iterable[str]:
    yield "\n## What is not run"
    decided = _of("decided otherwise")
    yield f"\n### Decided otherwise ({len(decided)})\n"
    yield "The decision records in `docs/adr/` say what holds here.\n"
    yield "| area | case | what holds | record |\n|---|---|---|---|"
    yield from (_row(one, ", ".join(one.decided_in)) for one in decided)
    others = _of("another subsystem")
    yield f"\n### Another subsystem ({len(others)})\n"
    yield "| area | case | why |\n|---|---|---|"
    yield from (_row(one) for one in others)
    later = _of("later")
    yield f"\n### Later ({len(later)})\n"
    yield "| area | case | what holds | comes with |\n|---|---|---|---|"
    yield from (_row(one, one.comes_with or "") for one in later)


def _of(because: str) -> Sequence[NotRun]:
    return [one for one in NOT_RUN if one.because == because]


def _row(one: NotRun, last: str | None = None) -> str:
    cells = [one.area, _cell(one.name), _cell(one.reason), *([last] if last is not None else [])]
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    DOCUMENT.write_text(rendered(), "utf-8")
