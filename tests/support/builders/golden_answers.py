"""Answers about the golden logs: `tests/golden_answers/<name>.jsonl`, one line per question.

`tests/golden_logs/<name>.ndjson` is a log that an earlier release exported. Its answers were
written once, by `python -m tests.support.builders.golden_answers NAME URL` on a migrated database.
Neither changes: an answer about the past stays as it is. A later release may add members.
"""

import asyncio
import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

from domain.values.record import run_id_of
from tests.support.builders.exported_logs import imported
from tests.support.builders.query_services import queries_on
from tests.support.builders.reads_of_the_past import (
    EVERYTHING,
    Read,
    ask,
    reads_about,
    reads_about_revisions,
)
from tests.support.builders.storytelling import ROOT
from tests.support.servers.running_log import RunningLog, running_on

LOGS = Path(__file__).parents[2] / "golden_logs"
FOLDER = Path(__file__).parents[2] / "golden_answers"
REVISIONS_ASKED = 2
PLACES = (0.1, 0.35, 0.85)
"""Shares of the log at which questions are asked."""


WORDED = frozenset({"compareRuns", "explainRun", "listEvents", "listRunEvents", "getRunHistory"})
"""Operations whose answers depend on the release: texts about rules, events in the newest version
of their types, and changes of all members of a run.
"""
_LATEST = frozenset({"listTreeUsage"})
LATER: Mapping[str, frozenset[str]] = {
    "first": _LATEST | {"getSessionTree", "listTimeline", "listRevisions", "getRevision"},
    "second": _LATEST,
}
"""Operations that are newer than the answers about a log."""


async def answered(
    running: RunningLog, reads: list[tuple[Read, int]], folder: Path
) -> list[dict[str, Any]]:
    """Return the answers in their stored form: a JSON document, or the code of the problem."""
    services = queries_on(running, folder)
    found: list[dict[str, Any]] = []
    for read, at in reads:
        given = await ask(services, read, at, EVERYTHING)
        try:
            content: Any = json.loads(given.content)
        except ValueError:
            content = given.content.decode().partition(":")[0]
        found.append({**read._asdict(), "at": at, "position": given.position, "answer": content})
    return found


def import_golden_log(url: str, name: str) -> None:
    imported(url, LOGS / f"{name}.ndjson")


async def _questions(running: RunningLog) -> list[tuple[Read, int]]:
    """About everything there is, about the root, and about the run that something happened to last
    and one of the first."""
    events = await running.events()
    reads: list[tuple[Read, int]] = []
    for place in PLACES:
        at = int(len(events) * place)
        before = [run_id_of(event.envelope.stream) for event in events[:at]]
        run_ids = dict.fromkeys(item for item in (before[-1:] + before[2:3]) if item is not None)
        last = next(item for item in reversed(before) if item is not None)
        about: list[UUID] = list({last: None, **run_ids})
        request = reads_about([ROOT], about) + reads_about_revisions(REVISIONS_ASKED)
        reads += [(read, at) for read in request if read.operation not in WORDED]
    return reads


async def _write(name: str, url: str) -> None:
    await asyncio.to_thread(import_golden_log, url, name)
    async with running_on(url) as running:
        with tempfile.TemporaryDirectory() as folder:
            found = await answered(running, await _questions(running), Path(folder))
    FOLDER.mkdir(exist_ok=True)
    text = "".join(json.dumps(item, ensure_ascii=False, sort_keys=True) + "\n" for item in found)
    with (FOLDER / f"{name}.jsonl").open("x", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    asyncio.run(_write(*sys.argv[1:3]))
