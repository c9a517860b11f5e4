"""Launches of children, and the programs to run."""

import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

from application.ports.credentials import Credential
from application.ports.runtimes import Launch, RuntimeEnd, RuntimeSession, TranscriptEntry
from domain.configuration.model_runtime import ModelRuntime
from domain.configuration.runtimes import CommandRuntime, Runtime, ScriptedRuntime
from infrastructure.outbound.child_processes.launcher import ProcessLauncher
from tests.support.servers.process_table import is_alive, open_descriptors, until_no_more_is_open

SERVER = {
    "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
    "HOME": "/home/of-the-server",
    "LANG": "C.UTF-8",
    "AWS_SECRET_ACCESS_KEY": "belongs to the server alone",
}
PLAIN = Launch(
    run_id=UUID("11111111-2222-4333-8444-555555555555"),
    session_key="agent:steward:subagent:child",
    agent_id="steward",
    requester_session_key="agent:main:main",
    depth=1,
    runtime=ScriptedRuntime(type="scripted"),
    system_prompt="You are a sub-agent.",
    message="Review it.",
    model="provider/model",
    thinking="low",
    tools_allow=None,
    tools_deny=("sessions_spawn",),
    shared_context={"goal": {"x": 1}},
    workspace_dir=None,
    environment={},
    url="http://127.0.0.1:8700",
    token="child-token-of-this-run",
)


def launch(runtime: Runtime, **changes: Any) -> Launch:
    return replace(PLAIN, runtime=runtime, **changes)


def model_launch(url: str, key: str | None = None, **settings: Any) -> Launch:
    """Return the launch of a model at this endpoint, without spawnlog's own tools."""
    runtime = ModelRuntime.model_validate({"type": "model", "baseUrl": url, **settings})
    values = {name: str(value) for name, value in runtime.values().items()}
    if key is not None:
        values["apiKey"] = Credential(key)
    return launch(runtime, environment=values, url=None, model=None)


def command(*words: str, **settings: Any) -> CommandRuntime:
    return CommandRuntime.model_validate({"type": "command", "command": list(words), **settings})


def python_command(text: str, *arguments: str, **settings: Any) -> CommandRuntime:
    return command(sys.executable, "-I", "-S", "-c", text, *arguments, **settings)


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


async def all_of(session: RuntimeSession) -> tuple[list[TranscriptEntry], RuntimeEnd]:
    entries = [entry async for entry in session.entries()]
    return entries, await session.end()


def text_of(entries: list[TranscriptEntry]) -> str:
    """Return the texts of the entries, joined, without the notes of the server."""
    return "".join(str(entry.body["text"]) for entry in entries if "source" not in entry.body)


def pairs(entries: list[TranscriptEntry]) -> list[tuple[str, Mapping[str, object]]]:
    return [(entry.kind, entry.body) for entry in entries]


@asynccontextmanager
async def careful_launcher(
    silence_seconds_max: float | None = None,
) -> AsyncIterator[ProcessLauncher]:
    """Yield a launcher; fail if it leaves a process or an open descriptor."""
    before = open_descriptors()
    launcher = ProcessLauncher(silence_seconds_max=silence_seconds_max)
    try:
        yield launcher
    finally:
        warm = launcher.fork_server_pid
        await launcher.close()
    assert warm is None or not is_alive(warm)
    await until_no_more_is_open(before)
