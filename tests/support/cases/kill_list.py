"""Write `docs/kills.md`: which test kills a server at which moment, in `make test`, in `make
test-all` and in the simulation.

`python -m tests.support.cases.kill_list` is part of `make docs`; `make test-all` fails if the page
is stale.
"""

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

from domain.event_types import TYPE_OF
from tests.support.durations import SHARD, STORE
from world.simulate import play

ROOT = Path(__file__).parents[3]
DOCUMENT = ROOT / "docs" / "kills.md"
SEEDS = range(1, 321)
"""Seeds that `make test` plays."""
FOLDERS = ("tests/e2e", "tests/infrastructure/outbound/log/append")
TEST = re.compile(r"^tests/[\w/]+/test_(\w+)\.py::\w+\[(.+)\]$", re.M)
WHEN = ("before", "during", "after")
MOMENT = re.compile(
    rf"\b({'|'.join(WHEN)})[ -]"
    r"((?:[A-Z][a-z]+[A-Z]\w+|step|undo|hook|webhook|attachment|lock)(?::\w+){0,2})"
)
MOMENT_APART = re.compile(r"^([A-Z][a-z]+[A-Z]\w+)-\w+-(before|after)$")
_HEAD = """# Where servers are killed

Tests kill a server by SIGKILL at an exact moment: before an event is committed, after it, or around
what is done outside (a step, a hook, a webhook). The next start must go on. `make test` kills once
for each kind of holder, `make test-all` at every moment. The simulation kills servers on virtual
time between any two steps: the number says how often the last thing that a killed server recorded
was that event, in the {seeds} lives that `make test` plays; `make test-all` plays 2,000 and more.
It has no scripts, attachments or webhooks.

`lock:…` are the statements by which a writer takes the append lock, stores with it and hands it
over: `try`, `wait` (in the simulation `waited`, when it has it), `store`, with `begin`, `stage` and
`commit` if a batch is several statements, `tell`, and `give_up` or `retake`. There one of the two
tests kills a server, the other one freezes it.

This page is written by `python -m tests.support.cases.kill_list`.

| moment | `make test` | `make test-all` alone | simulation |
|---|---|---|---|
"""
_TAIL = """
Behind these events no test and none of these lives kills, so the other lives of `make test-all` may
or may not: {left}.
"""


def collected(tier: str) -> dict[str, Counter[str]]:
    """Return the files of tests that kill, with how many tests of the tier do so, by
    moment."""
    words = ["--collect-only", "-q", "-n", "0", "-m", tier, "-p", "no:cacheprovider", *FOLDERS]
    all_of_it = {name: value for name, value in os.environ.items() if name not in (SHARD, STORE)}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=all_of_it,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Counter[str]] = {}
    for file, parameters in TEST.findall(done.stdout):
        apart = [(when, point) for point, when in MOMENT_APART.findall(parameters)]
        for when, fault_point in {*MOMENT.findall(parameters), *apart}:
            found.setdefault(f"{when} {fault_point}", Counter())[file] += 1
    return found


def rendered() -> str:
    """Return the page."""
    simulated: Counter[str] = Counter()
    for seed in SEEDS:
        simulated.update(play(seed).killed_after)
    gate, nightly = collected("not nightly"), collected("nightly")
    rows = []
    moments = {*gate, *nightly, *(f"after {name}" for name in simulated)}
    for moment in sorted(moments, key=_in_order):
        when, _, name = moment.partition(" ")
        lives = f"{simulated[name]:,}" if when == "after" and simulated[name] else ""
        row = [f"`{moment}`", _files(gate.get(moment)), _files(nightly.get(moment)), lives]
        rows.append(f"| {' | '.join(row)} |")
    known = {name for name, _ in TYPE_OF.values()}
    left = sorted(known - {moment.split(" ")[1].partition(":")[0] for moment in moments})
    tail = _TAIL.format(left=", ".join(f"`{name}`" for name in left))
    return _HEAD.format(seeds=len(SEEDS)) + "\n".join(rows) + "\n" + tail


def _in_order(moment: str) -> tuple[str, int]:
    when, _, name = moment.partition(" ")
    return name, WHEN.index(when)


def _files(files: Counter[str] | None) -> str:
    return ", ".join(f"{file} ({times})" for file, times in sorted((files or {}).items()))


if __name__ == "__main__":
    DOCUMENT.write_text(rendered(), "utf-8")
