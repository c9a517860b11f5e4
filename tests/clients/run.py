"""Clients of others against a real server: `python -m tests.clients.run`, with Node's `npm`.

Each is installed from the registry below `.build/`, in the version that is pinned, and lives the
same story by both transports; the conformance suite of the protocol is run as far as its scenarios
ask for no tools of their own.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path
from typing import Any

from tests.support.servers.running_server import (
    MAIN,
    RunningServer,
    configuration,
    scripted,
)

HERE = Path(__file__).parent
BUILD = HERE.parents[1] / ".build" / "clients"
CLIENTS = ("typescript_sdk", "ai_sdk")
TRANSPORTS = ("http", "stdio")
SECONDS_MAX = 120
INSTALL_SECONDS_MAX = 600
SCENARIOS = (
    "server-initialize",
    "ping",
    "tools-list",
    "resources-list",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
)
"""The others want tools, resources and prompts that the suite itself describes."""

TOOLS_MIN = 12


def main() -> int:
    """0 when each client saw what it should."""
    if shutil.which("npm") is None:
        print("npm is needed to install the clients: install Node.js", file=sys.stderr)
        return 1
    _install()
    failed: list[str] = []
    with tempfile.TemporaryDirectory(prefix="clients-") as folder:
        place = Path(folder)
        place.chmod(0o755)
        slow = scripted("slow", steps=[{"afterMs": 300_000}])
        config = configuration({**scripted(), "default": True}, slow)
        with RunningServer(place / "data", config) as server:
            for client in CLIENTS:
                for transport in TRANSPORTS:
                    failed += _lived(server, client, transport)
        open_config = {**config, "spawnlog": {**config["spawnlog"], "noAuth": True}}
        with RunningServer(place / "open", open_config) as server:
            for scenario in SCENARIOS:
                failed += _conforms(server, scenario)
    print("FAILED: " + "; ".join(failed) if failed else "every client saw what it should")
    return 1 if failed else 0


def _install() -> None:
    BUILD.mkdir(parents=True, exist_ok=True)
    for file in HERE.glob("*.mjs"):
        shutil.copy(file, BUILD)
    shutil.copy(HERE / "package.json", BUILD)
    subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "--silent"],
        cwd=BUILD,
        check=True,
        timeout=INSTALL_SECONDS_MAX,
    )


def _node() -> str:
    return str(BUILD / "node_modules" / ".bin" / "node")


def _lived(server: RunningServer, client: str, transport: str) -> list[str]:
    session = f"agent:main:client-{uuid.uuid4().hex}"
    place = {
        "url": f"{server.url}/mcp",
        "token": server.token,
        "session": session,
        "transport": transport,
        "command": [
            sys.executable, "-m", MAIN, "mcp", "--url", server.url, "--session", session,
        ],
    }  # fmt: skip
    done = subprocess.run(
        [_node(), f"{client}.mjs"],
        cwd=BUILD,
        env={**os.environ, "PLACE": json.dumps(place), "PYTHONPATH": str(HERE.parents[1])},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    name = f"{client} over {transport}"
    if done.returncode != 0:
        print(f"{name}: {done.stderr[-3000:]}", file=sys.stderr)
        return [f"{name}: exit status {done.returncode}"]
    saw: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    wrong = [
        what
        for what, holds in {
            "tools": len(saw["tools"]) == TOOLS_MIN,
            "spawn": saw["spawned"] == "accepted",
            "wait": saw["waited"] == "done" and "Status: success" in saw["reported"],
            "transcript": "done" in saw["transcript"],
            "refusal": saw["refused"] in ("forbidden", "error"),
            "unknown": saw["unknown"]["status"] == "error",
            "cut off": saw["cutOff"] == "given up",
            "back": saw["back"] == [True] and saw["stopped"] == "ok",
            "last": saw["last"] == ["stopped"],
        }.items()
        if not holds
    ]
    print(f"{name}: {'; '.join(wrong) or 'ok'}")
    return [f"{name}: {one} ({saw})" for one in wrong]


def _conforms(server: RunningServer, scenario: str) -> list[str]:
    suite = str(BUILD / "node_modules" / ".bin" / "conformance")
    done = subprocess.run(
        [_node(), suite, "server", "--url", f"{server.url}/mcp", "--scenario", scenario],
        cwd=BUILD,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    print(f"conformance {scenario}: {'ok' if done.returncode == 0 else 'failed'}")
    if done.returncode != 0:
        print((done.stdout + done.stderr)[-3000:])
        return [f"conformance {scenario}"]
    return []


if __name__ == "__main__":
    sys.exit(main())
