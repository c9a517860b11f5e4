"""Context scripts that mean harm: limits hold, nothing is left, and the record says what it was."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders.launches import program
from tests.support.servers.configurations import agent, configuration
from tests.support.servers.data_directories import new_place
from tests.support.servers.process_table import carrying, until
from tests.support.servers.script_server import Asked, ScriptServer, answer, redirect
from tests.support.servers.server import Server

pytestmark = pytest.mark.server

TOKEN = "hostile-script-of-these-tests"
SECRET = "canary-of-these-hostile-scripts"
GROWTH_BYTES_MAX = 32 * 1024 * 1024
LIMIT = 1_048_576
LINK_LOCAL = "Script resolves to a link-local address, and those are never called"
ELSEWHERE = "Script redirects to another host; give that address as its uri"

_DAEMON = f"""#!{sys.executable} -IS
import os, time
if os.fork():
    print("gone")
else:
    os.setsid()
    if not os.fork():
        os.execv({sys.executable!r}, ["{TOKEN}", "-IS", "-c", "import time; time.sleep(600)"])
"""
_PYTHON = f"#!{sys.executable} -IS\n"
FILES = {
    "hangs": f"#!/bin/sh\nsh -c 'sleep 600; : {TOKEN}'\n",
    "deaf": _PYTHON
    + f"import signal, time\nsignal.signal(15, signal.SIG_IGN)\ntime.sleep(600)  # {TOKEN}\n",
    "wails": "#!/bin/sh\nhead -c 200000000 /dev/zero >&2; echo done\n",
    "tells": f'#!/bin/sh\necho \'{{"message": "m", "agent": "{SECRET}"}}\'\n',
    "whines": f"#!/bin/sh\necho {SECRET} >&2; exit 3\n",
    "forks": _DAEMON,
    "floods": "#!/bin/sh\nexec head -c 1000000000 /dev/zero\n",
    "binary": "#!/bin/sh\nprintf 'a\\377\\000\\200b'\n",
    "deep": _PYTHON + "print('[' * 10_000 + ']' * 10_000)\n",
    "deep-object": _PYTHON + "print('{\"message\":' * 10_000 + '1' + '}' * 10_000)\n",
    "twice": '#!/bin/sh\necho \'{"message": "first", "message": "last"}\'\n',
    "nan": '#!/bin/sh\necho \'{"message": NaN, "agent": "plain"}\'\n',
    "path": '#!/bin/sh\necho \'{"message": "m", "agent": "../../etc/passwd"}\'\n',
    "endless-name": _PYTHON + "print('{\"agent\": \"' + 'a' * 1_000_000 + '\"}')\n",
}


async def endless(_: Asked, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
        await writer.drain()


async def silent(_: Asked, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
    await asyncio.Event().wait()


def agent_with_script(name: str, uri: str) -> dict[str, Any]:
    """An agent with one script, which may name another agent."""
    script = {
        "id": name,
        "uri": uri,
        "format": "json",
        "timeoutSeconds": 2,
        "log": True,
        "agentIdOverrideKey": "agent",
        "argMap": {"task": "task"},
    }
    return agent(name, subagents={"contextScripts": {"run": [script]}})


class Hostile:
    """A server whose agents have a script each, and what those at a URL lead to."""

    def __init__(self, server: Server, outside: ScriptServer) -> None:
        self.server = server
        self.outside = outside
        self.errors: dict[str, str] = {}

    async def spawned(self, agent_id: str) -> tuple[dict[str, Any], str]:
        """The receipt of the script, and the message that the child was given. Why it failed is in
        `errors`."""
        return await asyncio.to_thread(self._spawned, agent_id)

    def _spawned(self, agent_id: str) -> tuple[dict[str, Any], str]:
        answer = self.server.spawn("the task", agentId=agent_id)
        assert answer.status_code == 201, answer.text
        run = self.server.run(answer.json()["runId"], "announced")
        assert run["agentId"] == agent_id
        events = self.server.http.get(f"/v1/runs/{run['runId']}/events").json()["items"]
        (resolved,) = [one for one in events if one["type"] == "ScriptsResolved"]
        (receipt,) = resolved["payload"]["receipts"]
        self.errors = resolved.get("texts", {}).get("errors", {})
        prompt = self.server.http.get(f"/v1/runs/{run['runId']}/prompt").json()
        return receipt, prompt["message"]

    def says(self, agent_id: str, error: str) -> bool:
        """Whether its log tells of that failure."""
        return f"[context-script] {agent_id} failed: {error}" in self.server.log()

    def resident_bytes(self) -> int:
        """How much memory the server has."""
        assert self.server.process is not None
        text = Path(f"/proc/{self.server.process.pid}/status").read_text("utf-8")
        (line,) = [one for one in text.splitlines() if one.startswith("VmRSS:")]
        return int(line.split()[1]) * 1024


@pytest.fixture(scope="module")
async def hostile(module_database_url: str) -> AsyncIterator[Hostile]:
    with new_place() as place:
        async with ScriptServer() as outside:
            urls = {
                "url-endless": outside.at("/endless", endless),
                "url-silent": outside.at("/silent", silent),
                "url-elsewhere": outside.at("/a", redirect("http://example.com/")),
                "url-link-local": outside.at("/b", redirect("http://169.254.169.254/latest")),
                "url-metadata": "http://2852039166/latest/meta-data/",
                "url-loop": outside.at("/c", redirect("/c")),
                "url-refuses": outside.at("/d", answer(b"why", "403 Not For You")),
            }
            files = {name: str(program(place / name, text)) for name, text in FILES.items()}
            agents = [agent_with_script(name, uri) for name, uri in (files | urls).items()]
            config = configuration(agent("main", default=True), *agents, maxChildrenPerAgent=20)
            config["env"] = {"HOSTILE_TOKEN": SECRET}
            server = Server(place / "data", config, database_url=module_database_url)
            await asyncio.to_thread(server.start)
            try:
                yield Hostile(server, outside)
            finally:
                await asyncio.to_thread(server.stop)


@pytest.mark.parametrize(
    ("name", "error", "size"),
    [
        ("hangs", "Script execution timed out after 2 seconds", 0),
        ("deaf", "Script execution timed out after 2 seconds", 0),
        ("floods", f"Script printed more than {LIMIT} bytes and was ended", LIMIT),
        ("url-endless", f"Script answered more than {LIMIT} bytes and was ended", LIMIT),
        ("url-silent", "Script execution timed out after 2 seconds", 4),
        ("url-elsewhere", ELSEWHERE, 0),
        ("url-link-local", ELSEWHERE, 0),
        ("url-metadata", LINK_LOCAL, 0),
        ("url-loop", "Script redirects more than 3 times", 0),
        ("url-refuses", "HTTP 403: Not For You", 3),
    ],
)
async def test_what_goes_too_far_is_ended_and_told(
    hostile: Hostile, name: str, error: str, size: int
) -> None:
    before = hostile.resident_bytes()
    receipt, message = await hostile.spawned(name)
    assert (receipt["outcome"], receipt["outputBytes"]) == ("failed", size)
    assert receipt["injected"] is None
    assert hostile.says(name, error)
    assert hostile.errors[name].startswith(error)
    assert message.endswith("\n\nthe task")
    assert carrying(TOKEN) == []
    await until(lambda: hostile.outside.open == 0)
    assert hostile.resident_bytes() - before < GROWTH_BYTES_MAX


async def test_a_script_that_forks_and_exits_leaves_nobody(hostile: Hostile) -> None:
    receipt, message = await hostile.spawned("forks")
    assert (receipt["outcome"], receipt["exitCode"]) == ("injected", 0)
    assert message.endswith("the task\n\ngone")
    assert carrying(TOKEN) == []


async def test_complaints_without_end_are_no_failure(hostile: Hostile) -> None:
    before = hostile.resident_bytes()
    _, message = await hostile.spawned("wails")
    assert message.endswith("the task\n\ndone")
    assert hostile.resident_bytes() - before < GROWTH_BYTES_MAX


@pytest.mark.parametrize("name", ["tells", "whines"])
async def test_a_secret_that_is_known_stands_neither_in_events_nor_errors(
    hostile: Hostile, name: str
) -> None:
    receipt, _ = await hostile.spawned(name)
    assert receipt["candidate"] is None
    (run,) = hostile.server.http.get("/v1/runs", params={"limit": 1}).json()["items"]
    path = f"/v1/runs/{run['runId']}"
    told = [hostile.server.http.get(f"{path}/{what}").text for what in ("events", "explain")]
    assert SECRET not in "".join([*told, hostile.server.log()])
    if name == "whines":
        assert hostile.errors == {name: "Script exited with code 3: [redacted]"}


async def test_what_is_no_text_is_kept_as_it_is_and_shown_with_signs_in_its_place(
    hostile: Hostile,
) -> None:
    receipt, message = await hostile.spawned("binary")
    assert (receipt["outputBytes"], receipt["outputEncoding"]) == (5, "base64")
    assert len(receipt["outputHmac"]) == 64
    assert message.endswith("the task\n\na\ufffd\ufffd\ufffdb")


@pytest.mark.parametrize("name", ["deep", "deep-object"])
async def test_json_that_is_nested_too_deep_is_text(hostile: Hostile, name: str) -> None:
    receipt, message = await hostile.spawned(name)
    assert receipt["outcome"] == "injected"
    assert receipt["injected"]["bytes"] == receipt["outputBytes"] - 1
    assert message[-10:] in ("]" * 10, "}" * 10)


async def test_of_a_key_that_stands_twice_the_last_counts(hostile: Hostile) -> None:
    _, message = await hostile.spawned("twice")
    assert message.endswith("the task\n\nlast")


async def test_not_a_number_is_no_json(hostile: Hostile) -> None:
    receipt, message = await hostile.spawned("nan")
    assert receipt["candidate"] is None
    assert message.endswith('the task\n\n{"message": NaN, "agent": "plain"}')


@pytest.mark.parametrize("name", ["path", "endless-name"])
async def test_an_override_that_is_no_agent_id_is_told_and_not_taken(
    hostile: Hostile, name: str
) -> None:
    receipt, _ = await hostile.spawned(name)
    assert receipt["candidate"] is None
    run = await asyncio.to_thread(
        lambda: hostile.server.http.get("/v1/runs", params={"limit": 1}).json()["items"][0]
    )
    events = hostile.server.http.get(f"/v1/runs/{run['runId']}/events").json()["items"]
    (resolved,) = [one for one in events if one["type"] == "ScriptsResolved"]
    (candidate,) = resolved["payload"]["candidates"]
    assert (candidate["agentId"], candidate["verdict"]) == (None, "invalid_agent_id")
