"""A server whose agents can be spawned anew: with context scripts that count how often they run."""

from pathlib import Path
from typing import Any

import httpx2

from tests.support.servers.child_programs import shell, waiter
from tests.support.servers.running_server import RunningServer, configuration, scripted

SCRIPT = """#!/bin/sh
echo x >> "{calls}"
printf '{{"message": "said by {name}", "agent": "{override}"}}'
"""
SCOUT = "scout"
DONE = {"steps": [{"message": "first"}, {"message": "second"}], "result": "found it"}


class Scripts:
    """Context scripts in a folder, each with a file that has a letter for every time it ran."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(exist_ok=True)

    def write(self, name: str, *, override: str = "") -> dict[str, Any]:
        """The script and its section."""
        path = self._folder / f"{name}.sh"
        path.write_text(
            SCRIPT.format(calls=self._folder / f"{name}.calls", name=name, override=override)
        )
        path.chmod(0o700)
        return {
            "id": name,
            "uri": str(path),
            "format": "json",
            "argMap": {"task": "task"},
            "agentIdOverrideKey": "agent",
        }

    def remove(self, name: str) -> None:
        """The script is no more."""
        (self._folder / f"{name}.sh").unlink()

    def calls(self, name: str) -> int:
        """How often it ran."""
        path = self._folder / f"{name}.calls"
        return len(path.read_text().split()) if path.exists() else 0


def respawning(folder: Path, *sections: dict[str, Any], cap: int = 20) -> dict[str, Any]:
    """Agents `main`, `scout`, which says two things, `guided`, which has these context scripts,
    `printer`, which prints its own prompt, and `waiter`, which stays until it is let go."""
    scripts = {"contextScripts": {"run": list(sections)}}
    guided = scripted("guided", **DONE) | {"subagents": scripts}
    config = configuration(
        {**scripted("main"), "default": True},
        scripted(SCOUT, **DONE),
        guided,
        shell("printer", "cat"),
        waiter("waiter", folder / "notes"),
        maxChildrenPerAgent=cap,
        maxSpawnDepth=2,
    )
    return config


def respawn(
    server: RunningServer, run_id: str, *, key: str | None = None, **body: Any
) -> httpx2.Response:
    """`POST /v1/runs/{runId}/respawn`."""
    headers = {"Idempotency-Key": key} if key else {}
    return server.http.post(f"/v1/runs/{run_id}/respawn", json=body, headers=headers)
