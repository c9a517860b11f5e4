"""A server with the coding agents of `examples/coding-agents`, and programs of their names that
play what the real ones printed.

A program knows the flags that its namesake has, and looks for the server of its tools where that
one does; it asks there which tools there are. What it found it leaves in `<run id>.json` of a
folder. `Play: failed` in the message makes it play how it fails; with `Play: endless` it never
ends.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.builders.launches import program
from tests.support.servers.preloaded import ROOT

EXAMPLE = ROOT / "examples" / "coding-agents"
RECORDED = ROOT / "tests" / "e2e" / "recorded"
AGENTS = ("claude", "codex", "gemini", "opencode")

_PROGRAM = """
import json, os, pathlib, re, signal, sys, tomllib, urllib.request

RECORDED, NOTES = pathlib.Path(sys.argv.pop(1)), pathlib.Path(sys.argv.pop(1))
NAME = sys.argv.pop(1)
# Of each agent the flags that it is started with; those that are True take a value.
FLAGS = {
    "claude": {
        "-p": False, "--verbose": False, "--output-format": True, "--strict-mcp-config": False,
        "--no-session-persistence": False, "--append-system-prompt-file": True, "--model": True,
        "--effort": True, "--mcp-config": True, "--allowedTools": True, "--permission-mode": True,
    },
    "codex": {
        "--json": False, "--skip-git-repo-check": False, "--ephemeral": False, "--model": True,
        "-c": True, "--sandbox": True,
    },
    "gemini": {
        "--output-format": True, "--allowed-mcp-server-names": True, "--model": True,
        "--approval-mode": True,
    },
    "opencode": {"--format": True, "--model": True, "--variant": True},
}[NAME]
COMMANDS = {"claude": [], "codex": ["exec"], "gemini": [], "opencode": ["run"]}[NAME]
LAST = {"codex": ["-"]}.get(NAME, [])

def flags(words):
    given = {}
    words = iter(words)
    for word in words:
        if word not in FLAGS:
            sys.exit(f"unknown option {word}")
        given.setdefault(word, []).append(next(words) if FLAGS[word] else True)
    return given

def with_variables(text):
    return re.sub(r"\\$\\{(\\w+)\\}", lambda found: os.environ[found[1]], text)

def set_by(words):
    whole = {}
    for word in words:
        key, _, value = word.partition("=")
        *steps, last = key.split(".")
        at = whole
        for step in steps:
            at = at.setdefault(step, {})
        at[last] = tomllib.loads(f"value = {value}")["value"]
    return whole

def server():
    if NAME == "claude":
        assert given["--strict-mcp-config"]
        one = json.loads(given["--mcp-config"][0])["mcpServers"]["spawnlog"]
        assert (one["type"], one["alwaysLoad"]) == ("http", True)
        return one["url"], with_variables(one["headers"]["Authorization"])
    if NAME == "codex":
        one = set_by(given["-c"])["mcp_servers"]["spawnlog"]
        assert one["default_tools_approval_mode"] == "approve"
        return one["url"], "Bearer " + os.environ[one["bearer_token_env_var"]]
    if NAME == "gemini":
        assert os.environ["GEMINI_CLI_TRUST_WORKSPACE"] == "true"
        assert given["--allowed-mcp-server-names"] == ["spawnlog"]
        settings = json.loads(pathlib.Path(".gemini/settings.json").read_text())
        one = settings["mcpServers"]["spawnlog"]
        assert one["trust"] is True
        return with_variables(one["httpUrl"]), with_variables(one["headers"]["Authorization"])
    one = json.loads(os.environ["OPENCODE_CONFIG_CONTENT"])["mcp"]["spawnlog"]
    assert (one["type"], one["oauth"]) == ("remote", False)
    found = re.fullmatch(r"Bearer \\{env:(\\w+)\\}", one["headers"]["Authorization"])
    return one["url"], "Bearer " + os.environ[found[1]]

def tools():
    url, authorization = server()
    version = "2026-07-28"
    meta = {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
    headers = {
        "Authorization": authorization,
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": version,
        "Mcp-Method": "tools/list",
    }
    request = urllib.request.Request(url, json.dumps(message).encode(), headers)
    with urllib.request.urlopen(request, timeout=20) as answer:
        text = answer.read().decode()
    data = [line[6:] for line in text.splitlines() if line.startswith("data: ")] or [text]
    return [one["name"] for one in json.loads(data[-1])["result"]["tools"]]

words = sys.argv[1:]
assert words[: len(COMMANDS)] == COMMANDS, words
assert words[len(words) - len(LAST) :] == LAST, words
given = flags(words[len(COMMANDS) : len(words) - len(LAST)])
read = sys.stdin.read()
system = given.get("--append-system-prompt-file")
found = {
    "pid": os.getpid(), "arguments": words, "read": read, "tools": tools(), "cwd": os.getcwd(),
    "system": pathlib.Path(system[0]).read_text() if system else None,
}
note = NOTES / (os.environ["SPAWNLOG_RUN_ID"] + ".part")
note.write_text(json.dumps(found))
note.rename(note.with_suffix(".json"))
failed = "Play: failed" in read
lines = (RECORDED / f"{NAME}-{'failed' if failed else 'done'}.jsonl").read_text().splitlines()
for line in lines:
    print(line, flush=True)
    if "Play: endless" in read:
        signal.pause()
sys.exit(1 if failed else 0)
"""


def recorded_agents(folder: Path) -> tuple[Path, dict[str, str]]:
    """Copy the example to a folder, with programs of the agents' names that leave notes beside it.
    Return the configuration and the environment of its server."""
    notes = folder / "notes"
    notes.mkdir(parents=True)
    copy = folder / "coding-agents"
    shutil.copytree(EXAMPLE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    play = program(folder / "player.py", _PROGRAM)
    for name in AGENTS:
        words = f'"{sys.executable}" -IS "{play}" "{RECORDED}" "{notes}" {name} "$@"'
        program(folder / "bin" / name, f"#!/bin/sh\nexec {words}\n")
    return copy / "spawnlog.json5", {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}


def start_preset(
    folder: Path, lines: str, agent_id: str = "opencode", **told: Any
) -> "subprocess.Popen[str]":
    """Start a preset without a server; these lines of shell are its agent."""
    program(folder / agent_id, f"#!/bin/sh\ncat > read\n{lines}\n")
    preset = {"claude": "claude_code"}.get(agent_id, agent_id)
    process = subprocess.Popen(
        [sys.executable, EXAMPLE / f"{preset}.py"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PATH": f"{folder}:{os.environ['PATH']}", "HOME": str(folder)},
        cwd=folder,
        text=True,
    )
    assert process.stdin is not None
    with process.stdin as stdin:
        stdin.write(json.dumps({"message": "Begin.", "mcp": None, **told}))
    process.stdin = None
    return process
