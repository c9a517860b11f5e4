"""A server that is asked for several runs at once, some of which cannot be prepared."""

import shutil
from pathlib import Path
from typing import Any

from tests.support.servers.mortal_server import QUICK_LEASE_SECONDS, Mortal
from tests.support.servers.running_server import configuration, scripted, wait_for

MAIN = "agent:main:main"
PLACES = 5

# `bad`, `late` and `mixed` are refused, the second of them once it may be; who is `held`, or the
# first of `mixed`, waits to be let go.
_CHOOSER = """#!/bin/sh
case "$1" in
    label=held*|label=late*-2|label=mixed*-1)
        echo $$ > "{folder}/at.$SPAWNLOG_RUN_ID"
        while [ ! -e "{folder}/$SPAWNLOG_RUN_ID.go" ]; do sleep 0.02; done ;;
esac
case "$1" in
    label=bad*-2|label=late*-2|label=mixed*-2)
        echo '{"message": "no", "targetAgentId": "broken"}' ;;
    *) echo '{"message": "for you: '"$1"'"}' ;;
esac
"""


def batching(folder: Path) -> dict[str, Any]:
    """Agents `plain`, for which nothing has to be done; `fussy`, about which a script has a word;
    `maker`, which gets a folder of its own; and `broken`, which nobody can run."""
    script = folder / "chooser.sh"
    script.write_text(_CHOOSER.replace("{folder}", str(folder)), "utf-8")
    script.chmod(0o755)
    chooser = {
        "id": "chooser",
        "uri": str(script),
        "format": "arguments",
        "argMap": {"label": "label"},
        "position": "prepend",
        "returnKey": "message",
        "agentIdOverrideKey": "targetAgentId",
        "timeoutSeconds": 60,
    }
    fussy = {**scripted("fussy"), "subagents": {"contextScripts": {"run": [chooser]}}}
    broken = {"id": "broken", "runtime": {"type": "embedded"}}
    config = configuration(
        {**scripted("main"), "default": True},
        scripted("plain"),
        fussy,
        scripted("maker"),
        broken,
        maxChildrenPerAgent=PLACES,
        maxConcurrent=PLACES,
        archiveAfterMinutes=0,
    )
    config["spawnlog"] = {"leaseSeconds": QUICK_LEASE_SECONDS, "drainSeconds": 2}
    (folder / "work").mkdir(exist_ok=True)
    for agent in config["agents"]["list"]:
        made = agent["id"] == "maker"
        agent["workspace"] = str(folder.parent / "made" / "desk" if made else folder / "work")
    return config


class Batching(Mortal):
    """It can be killed. Its runs are of the session `agent:main:main` unless another is named."""

    def __init__(self, data_dir: Path, folder: Path, database_url: str = "") -> None:
        folder.mkdir(exist_ok=True)
        super().__init__(data_dir, folder, database_url, config=batching(folder))

    def clear(self) -> None:
        """Nothing was made for anybody yet."""
        shutil.rmtree(self.folder.parent / "made", ignore_errors=True)

    def batch(self, *tasks: str, session: str = MAIN, **body: Any) -> Any:
        """Ask for a run for each task."""
        requester = {"sessionKey": session}
        whole = {"requester": requester, "parallel": True, **body}
        return self.spawn(list(tasks), **whole)  # type: ignore[arg-type]

    def runs_of(self, session: str) -> list[dict[str, Any]]:
        """All runs of a session, the oldest first."""
        query = {"requester": session, "limit": "100"}
        items = self.http.get("/v1/runs", params=query).json()["items"]
        return sorted(items, key=lambda one: str(one["label"]))

    def appends(self, *run_ids: str) -> list[list[str]]:
        """What was recorded of these runs and of the places for them, append by append."""
        appends: dict[int, list[str]] = {}
        for event in self.whole_log():
            if event["runId"] in run_ids:
                appends.setdefault(event["appendLast"], []).append(event["type"])
        return list(appends.values())

    def are_at_work(self, session: str, count: int) -> list[dict[str, Any]]:
        """The runs of a session, once so many of their scripts wait."""

        def at_work() -> list[dict[str, Any]] | None:
            runs = self.runs_of(session)
            waiting = [one for one in runs if (self.folder / f"at.{one['runId']}").exists()]
            return runs if len(waiting) == count else None

        return wait_for("the scripts to be at work", at_work)

    def places(self, session: str) -> int:
        """How many places of a session are taken."""
        return int(self.session(session)["activeChildren"])
