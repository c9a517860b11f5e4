"""Clients of others, and the conformance suite of the protocol, against a real server:
`python -m mcp_clients.run`, which installs Node below `.build/` as the building of the page does.

Each client is installed from the registry of Node, in the version that is pinned, and lives the
same story by both transports. The suite asks a server that has its tools beside our own: see
`conformance`.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path
from typing import Any

from build_page import node, node_environment, npm
from mcp_clients.conformance import conformance, suite_configuration
from tests.support.servers.configurations import agent, configuration, scripted
from tests.support.servers.server import MAIN, Server

HERE = Path(__file__).parent
BUILD = HERE.parent / ".build" / "clients"
CLIENTS = ("typescript_sdk", "ai_sdk")
TRANSPORTS = ("http", "stdio")
SECONDS_MAX = 120
INSTALL_SECONDS_MAX = 600
TOOLS_MIN = 12


def main() -> int:
    """0 when each client saw what it should."""
    _install()
    failed: list[str] = []
    with tempfile.TemporaryDirectory(prefix="clients-") as folder:
        place = Path(folder)
        place.chmod(0o755)
        slow = agent("slow", scripted(steps=[{"afterMs": 300_000}]))
        config = configuration(agent(default=True), slow)
        with Server(place / "data", config) as server:
            for client in CLIENTS:
                for transport in TRANSPORTS:
                    failed += _lived(server, client, transport)
        program = "mcp_clients.conformance_server"
        with Server(place / "suite", suite_configuration(), program=program) as server:
            failed += conformance(BUILD, f"{server.url}/mcp")
    print("FAILED: " + "; ".join(failed) if failed else "every client saw what it should")
    return 1 if failed else 0


def _install() -> None:
    BUILD.mkdir(parents=True, exist_ok=True)
    for file in HERE.glob("*.mjs"):
        shutil.copy(file, BUILD)
    shutil.copy(HERE / "package.json", BUILD)
    subprocess.run(
        npm("install", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"),
        cwd=BUILD,
        env=node_environment(),
        check=True,
        timeout=INSTALL_SECONDS_MAX,
    )


def _lived(server: Server, client: str, transport: str) -> list[str]:
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
        node(f"{client}.mjs"),
        cwd=BUILD,
        env={**node_environment(), "PLACE": json.dumps(place), "PYTHONPATH": str(HERE.parent)},
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


if __name__ == "__main__":
    sys.exit(main())
