"""Hostile context scripts: limits hold, nothing is left, and the record is true.

The tests of the script runners cover each kind of attack.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders.launches import program
from tests.support.servers.configurations import agent, configuration
from tests.support.servers.data_directories import new_place
from tests.support.servers.process_table import carrying
from tests.support.servers.script_server import Asked, ScriptServer, redirect
from tests.support.servers.server import Server

pytestmark = pytest.mark.server

TOKEN = "hostile-script-of-these-tests"
SECRET = "canary-of-these-hostile-scripts"
GROWTH_BYTES_MAX = 32 * 1024 * 1024
LIMIT = 1_048_576

_PYTHON = f"#!{sys.executable} -IS\n"
_DAEMON = f"""{_PYTHON}
import os, time
if os.fork():
    print("gone")
else:
    os.setsid()
    if not os.fork():
        os.execv({sys.executable!r}, ["{TOKEN}", "-IS", "-c", "import time; time.sleep(600)"])
"""
FILES = {
    "deaf": _PYTHON
    + f"import signal, time\nsignal.signal(15, signal.SIG_IGN)\ntime.sleep(600)  # {TOKEN}\n",
    "wails": "#!/bin/sh\nhead -c 100000000 /dev/zero >&2; echo done\n",
    "tells": f'#!/bin/sh\necho \'{{"message": "m", "agent": "{SECRET}"}}\'\n',
    "whines": f"#!/bin/sh\necho {SECRET} >&2; exit 3\n",
    "forks": _DAEMON,
    "floods": "#!/bin/sh\nexec head -c 1000000000 /dev/zero\n",
    "binary": "#!/bin/sh\nprintf 'a\\377\\000\\200b'\n",
    "deep": _PYTHON + "print('[' * 10_000 + ']' * 10_000)\n",
    "nan": '#!/bin/sh\necho \'{"message": NaN, "agent": "plain"}\'\n',
    "path": '#!/bin/sh\necho \'{"message": "m", "agent": "../../etc/passwd"}\'\n',
}


async def endless(_: Asked, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
        await writer.drain()


def agent_with_script(name: str, uri: str) -> dict[str, Any]:
    """Return an agent with one script, which may name another agent."""
    script = {
        "id": name,
        "uri": uri,
        "format": "json",
        "timeoutSeconds": 2 if name == "deaf" else 25,
        "log": True,
        "agentIdOverrideKey": "agent",
        "argMap": {"task": "task"},
    }
    return agent(name, subagents={"contextScripts": {"run": [script]}})


@pytest.fixture(scope="module")
async def server(module_database_url: str) -> AsyncIterator[Server]:
    """Yield a server whose agents have one script each."""
    with new_place() as place:
        async with ScriptServer() as outside:
            scripts = {name: str(program(place / name, text)) for name, text in FILES.items()} | {
                "url-endless": outside.at("/endless", endless),
                "url-elsewhere": outside.at("/a", redirect("http://169.254.169.254/latest")),
                "url-metadata": "http://2852039166/latest/meta-data/",
            }
            config = configuration(
                agent("main", default=True),
                *(agent_with_script(name, uri) for name, uri in scripts.items()),
                maxChildrenPerAgent=20,
                env={"HOSTILE_TOKEN": SECRET},
            )
            running = Server(place / "data", config, database_url=module_database_url)
            await asyncio.to_thread(running.start)
            try:
                yield running
            finally:
                await asyncio.to_thread(running.stop)


class Spawned:
    """Result of a spawn: receipt and failure of its script, the verdict about the proposed agent,
    and the child's message.
    """

    def __init__(self, server: Server, agent_id: str) -> None:
        self.run = server.announced(agent_id, "the task")
        assert self.run["agentId"] == agent_id
        path = f"/v1/runs/{self.run['runId']}"
        self.events = server.http.get(f"{path}/events")
        (resolved,) = [item for item in self.events.json()["items"] if item["type"] == RESOLVED]
        (self.receipt,) = resolved["payload"]["receipts"]
        self.candidates = resolved["payload"]["candidates"]
        self.error = resolved.get("texts", {}).get("errors", {}).get(agent_id)
        self.message = str(server.prompt(self.run["runId"])["message"])
        self.explained = server.http.get(f"{path}/explain").text


RESOLVED = "ScriptsResolved"


async def spawned(server: Server, agent_id: str) -> Spawned:
    return await asyncio.to_thread(Spawned, server, agent_id)


def resident_bytes(server: Server) -> int:
    assert server.process is not None
    text = Path(f"/proc/{server.process.pid}/status").read_text("utf-8")
    (line,) = [text for text in text.splitlines() if text.startswith("VmRSS:")]
    return int(line.split()[1]) * 1024


@pytest.mark.parametrize(
    ("name", "error", "size"),
    [
        ("deaf", "Script execution timed out after 2 seconds", 0),
        ("floods", f"Script printed more than {LIMIT} bytes and was stopped", LIMIT),
        ("url-endless", f"Script answered more than {LIMIT} bytes and was stopped", LIMIT),
        (
            *("url-elsewhere", "Script redirects to another host; give that address as its uri"),
            0,
        ),
        (
            "url-metadata",
            "Script resolves to a link-local address, which is never called",
            0,
        ),
    ],
)
async def test_script_that_goes_too_far_is_ended(
    server: Server, name: str, error: str, size: int
) -> None:
    before = resident_bytes(server)
    found = await spawned(server, name)
    assert (found.receipt["outcome"], found.receipt["outputBytes"]) == ("failed", size)
    assert found.receipt["injected"] is None
    assert found.error is not None
    assert found.error.startswith(error)
    assert f"[context-script] {name} failed: {error}" in server.log()
    assert found.message.endswith("\n\nthe task")
    assert carrying(TOKEN) == []
    assert resident_bytes(server) - before < GROWTH_BYTES_MAX


@pytest.mark.parametrize(("name", "printed"), [("forks", "gone"), ("wails", "done")])
async def test_script_leaves_no_process_and_no_memory(
    server: Server, name: str, printed: str
) -> None:
    before = resident_bytes(server)
    found = await spawned(server, name)
    assert (found.receipt["outcome"], found.receipt["exitCode"]) == ("injected", 0)
    assert found.message.endswith(f"the task\n\n{printed}")
    assert carrying(TOKEN) == []
    assert resident_bytes(server) - before < GROWTH_BYTES_MAX


@pytest.mark.parametrize(
    ("name", "error"), [("tells", None), ("whines", "Script exited with code 3: [redacted]")]
)
async def test_secret_of_script_is_in_no_event_or_log(
    server: Server, name: str, error: str | None
) -> None:
    found = await spawned(server, name)
    assert (found.receipt["candidate"], found.error) == (None, error)
    assert SECRET not in found.events.text + found.explained + server.log()


async def test_odd_output_is_kept_and_shown_as_text(server: Server) -> None:
    binary = await spawned(server, "binary")
    assert (binary.receipt["outputBytes"], binary.receipt["outputEncoding"]) == (5, "base64")
    assert binary.message.endswith("the task\n\na\ufffd\ufffd\ufffdb")
    deep = await spawned(server, "deep")
    assert deep.receipt["injected"]["bytes"] == deep.receipt["outputBytes"] - 1
    assert deep.message.endswith("]" * 10)
    nan = await spawned(server, "nan")
    assert nan.receipt["candidate"] is None
    assert nan.message.endswith('the task\n\n{"message": NaN, "agent": "plain"}')


async def test_override_that_is_no_agent_id_is_not_taken(server: Server) -> None:
    found = await spawned(server, "path")
    assert found.receipt["candidate"] is None
    (candidate,) = found.candidates
    assert (candidate["agentId"], candidate["verdict"]) == (None, "invalid_agent_id")
