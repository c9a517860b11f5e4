"""`examples/demo.py`, run whole as `make demo` runs it."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.servers.data_directories import new_place
from tests.support.servers.preloaded import ROOT
from tests.support.servers.preloaded_command import command_folder

pytestmark = [pytest.mark.server, pytest.mark.timeout(330)]

DEMO_SECONDS_MAX = 310
"""A little more than the demo's own limit."""

PREPARED = ["SpawnRequested", "ScriptsResolved", "PreparationStarted", "SessionCreated"]
RUN = ["RunQueued", "RunClaimed", "RunStarted", "RunEnded", "RunAnnounced"]
CONTINUED = ["MessageReceived", "ContinuationPlanned", *RUN]
WAITING = ("RunWaits", "DependencyMet")
LATE_REPORT = ("RunEnded", "DescendantsSettled", "ChildrenReported")
# For each story: the events of each run that it shows, and a part of its text.
STORIES: dict[str, tuple[list[list[str]], list[str]]] = {
    "A plain run": (
        [[*PREPARED, *RUN]],
        ["result: data/harbour.txt: 9 lines, 80 words, 424 bytes"],
    ),
    "An alias": (
        [[*PREPARED[:2], "AgentOverridden", *PREPARED[2:], *RUN]],
        ["I am main at depth 1.", "You are the Steward.", "steward → main"],
    ),
    "Two in parallel, and one that waits": (
        [[*PREPARED, "DependencyMet", "DependencyMet", *RUN]],
        [
            'I share count-1: "data/harbour.txt: 9 lines, 80 words, 424 bytes"',
            'I share count-2: "data/tides.txt: 3 lines, 9 words, 51 bytes"',
            'I share goal: "which text is longer"',
        ],
    ),
    "An orchestrator with the tools of a model": (
        [
            [
                *(*PREPARED, *RUN[:3], "YieldRequested", "RunEnded"),
                *("ChildrenReported", "RunContinued", "RunAnnounced"),
            ],
            CONTINUED,
        ],
        [
            "tools it used: sessions_spawn, sessions_yield",
            "- data/harbour.txt: 9 lines, 80 words, 424 bytes\n    - data/tides.txt: 3 lines",
        ],
    ),
    "A run that is steered": (
        [[*PREPARED, *RUN[:3], "MessageQueued", "RunEnded", "RunContinued", "RunAnnounced"]],
        ["result: slept for 0 s", "skipped, error, it was steered"],
    ),
    "A result that is posted in a chat": (
        [[*PREPARED, *RUN, "EffectAttempted"]],
        ["posted to channel:7: Status: success", "data/tides.txt: 3 lines, 9 words, 51 bytes"],
    ),
    "Other ends": (
        [],
        [
            "ended as failed: exited with code 3: failing: the harbour is closed",
            "ended as timeout: it took longer than its limit of 1 s",
            "ended as stopped",
            "done     counter  deleted",
        ],
    ),
    "A refusal, and looking back": (
        [["SpawnRequested", "SpawnRefused"], [*PREPARED, *RUN]],
        [
            "refused: sessions_spawn has reached max active children for this session (5/5)",
            "at work then: nap-1, nap-2, nap-3, nap-4, nap-5",
            "why: active_children refused: 5 of 5 children are active",
            "maxChildrenPerAgent were 6: 5 same, 1 newly-allowed",
            "result: data/tides.txt: 3 lines, 9 words, 51 bytes",
        ],
    ),
}


@contextmanager
def started() -> "Iterator[subprocess.Popen[str]]":
    """Start the demo in an empty home, without a terminal; assert that nothing of it is left."""
    with new_place() as place:
        home, temporary = place / "home", place / "tmp"
        for folder in (home, temporary):
            folder.mkdir()
        with (
            command_folder() as commands,
            subprocess.Popen(
                [commands / "python", ROOT / "examples" / "demo.py"],
                cwd=home,
                env={
                    **os.environ,
                    "HOME": str(home),
                    "TMPDIR": str(temporary),
                    "SPAWNLOG_URL": "http://127.0.0.1:1",
                },
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            ) as demo,
        ):
            yield demo
        assert left_in(home, temporary) == []


def left_in(*folders: Path) -> list[Path]:
    return [path for folder in folders for path in folder.iterdir()]


def settled(events: list[str]) -> tuple[list[str], int]:
    """Return the events of a run in an order that no race decides, and how many runs it waited for.

    Those may be over before or after it begins to wait. The children of a run that yields may be
    done before or after its end: its end alone reports them, or `DescendantsSettled` does first.
    """
    kept = [event for event in events if event not in WAITING]
    places = zip(["", *kept], kept, [*kept[1:], ""], strict=False)
    ordered = [place[1] for place in places if place != LATE_REPORT]
    return ordered, events.count("DependencyMet")


def test_demo_tells_its_story() -> None:
    with started() as demo:
        output, _ = demo.communicate(timeout=DEMO_SECONDS_MAX)
    assert demo.returncode == 0, output
    _, *stories = re.split(r"^\d+\. ", output, flags=re.MULTILINE)
    result = {story.partition("\n")[0]: story for story in stories}
    assert list(result) == list(STORIES)
    for title, (runs, texts) in STORIES.items():
        tables = result[title].split("$ spawnlog run events ")[1:]
        events = [re.findall(r"^ +\d+  \S+ +\+\S+  (\w+)", table, re.MULTILINE) for table in tables]
        assert [*map(settled, events)] == [*map(settled, runs)], result[title]
        assert [text for text in texts if text not in result[title]] == [], result[title]


def test_demo_that_is_interrupted_leaves_nothing() -> None:
    with started() as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            if line.startswith("The server is ready"):
                break
        demo.send_signal(signal.SIGINT)
        output, _ = demo.communicate(timeout=DEMO_SECONDS_MAX)
    assert demo.returncode == 128 + signal.SIGINT, output
