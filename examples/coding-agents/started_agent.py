"""Start a coding agent for a run: the part that the presets in this folder share.

A preset defines the command of its agent (`Start`) and the entries for a line of its output
(`Reading`). This module reads the input of the run, starts the process, and reports its end.

The agent reads prompts from files without a name, because a stopped run has no time to clean up.
Neither a prompt nor a secret is an argument, because every program of the machine can read these.
The agent takes the token of its session from the variable SPAWNLOG_TOKEN.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from bisect import bisect
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile

LINE_BYTES_MAX = 32 * 1024 * 1024
# As JSON; a line of the transcript, with two of them, has at most 1 MiB.
TEXT_BYTES_MAX = 400_000
HISTORY_CHARACTERS_MAX = 100_000
TOKEN_VARIABLE = "SPAWNLOG_TOKEN"
SERVER_NAME = "spawnlog"
WAIT_SECONDS_MAX = 660
SAID_BEFORE = "earlier-in-this-session"
UNKNOWN_KINDS_MAX = 20


@dataclass(frozen=True)
class Told:
    """Input of the run."""

    message: str
    system_prompt: str
    model: str | None
    thinking: str | None
    mcp_url: str | None
    history: tuple[str, ...] = ()

    @classmethod
    def read(cls, text):
        """Return the input, read from the runtime's `stdin-json`."""
        told = json.loads(text)
        servers = (told.get("mcp") or {}).get("mcpServers") or {}
        return cls(
            message=told["message"],
            system_prompt=told.get("systemPrompt") or "",
            model=told.get("model"),
            thinking=told.get("thinking"),
            mcp_url=(servers.get(SERVER_NAME) or {}).get("url"),
            history=tuple(told.get("history") or ()),
        )

    def model_of(self, provider):
        """Return the model's name without its provider, as an agent of one provider expects it."""
        return self.model.removeprefix(f"{provider}/") if self.model else None

    def prompt(self, *, with_system_prompt):
        """Return the prompt of the agent, which begins with the earlier conversation."""
        parts = [
            self.system_prompt if with_system_prompt else "",
            said_before(self.history),
            self.message,
        ]
        return "\n\n".join(part for part in parts if part)


@dataclass(frozen=True)
class Start:
    """Command of an agent. `system_prompt` is written to a file without a name, whose path replaces
    `{system_prompt_file}` in the arguments."""

    arguments: tuple[str, ...]
    prompt: str
    environment: dict = field(default_factory=dict)
    system_prompt: str = ""


class Reading:
    """Base of the readers of an agent's output; a preset adds `entries(event)`.

    `entries` returns the transcript entries for one line, a JSON object. `failure` is the agent's
    own reason for failing. `is_done` is True once the agent has printed its last event; if the
    output ends before that, the run has broken off. `was_excused` is True if the agent exits with
    1 for an error from which it recovered.
    """

    LAST_EVENT = "last event"

    def __init__(self, told):
        self.told = told
        self.failure = None
        self.is_done = False
        self.was_excused = False
        self._unknown = Counter()

    def end(self):
        """Return the entries that are due after the last line."""
        return []

    def unknown(self, kind):
        """Count an event of a kind that the preset does not know; return no entries."""
        if kind in self._unknown or len(self._unknown) < UNKNOWN_KINDS_MAX:
            self._unknown[kind] += 1
        else:
            self._unknown["other kinds"] += 1
        return []

    def unknown_events(self):
        """Return one entry that counts the unknown events, or none."""
        if not self._unknown:
            return []
        kinds = ", ".join(f"{str(kind)[:60]} ({count})" for kind, count in self._unknown.items())
        return [progress(f"events that this preset does not know and left out: {kinds}")]


class RunningTotals:
    """Converter of running totals of tokens into the tokens that were added since."""

    def __init__(self):
        self._highest = {}

    def usage(self, model, **counts):
        """Return the usage entry for what was added to the totals of a model, or nothing.

        A total below an earlier one adds nothing: agents report zeros when they crash.
        """
        before = self._highest.get(model, {})
        now = {name: max(count or 0, before.get(name, 0)) for name, count in counts.items()}
        self._highest[model] = now
        added = {name: count - before.get(name, 0) for name, count in now.items()}
        return [usage(model, **added)] if any(added.values()) else []


class OpenCalls:
    """Tool calls without a result yet, timed from the line of the call to that of its result."""

    def __init__(self):
        self._calls = {}

    def begin(self, call_id, call=None):
        """Store a call."""
        self._calls[call_id] = (call, time.monotonic())

    def end(self, call_id):
        """Return a call and its duration in milliseconds, each None if the call is unknown."""
        call, began = self._calls.pop(call_id, (None, None))
        return call, None if began is None else (time.monotonic() - began) * 1000


def message(text):
    """Return the entry of a message of the agent."""
    return {"type": "message", "role": "assistant", "text": cut(text)}


def progress(text):
    """Return the entry of the agent's progress."""
    return {"type": "progress", "text": cut(text)}


def tool(name, given, answered, duration_ms=None):
    """Return the entry of a tool call. `duration_ms` is None if the duration is unknown."""
    entry = {"type": "tool", "name": name, "input": short(given), "output": short(answered)}
    return entry if duration_ms is None else {**entry, "durationMs": max(0, round(duration_ms))}


def usage(model, *, taken, given, cache_read=0, cache_write=0):
    """Return the usage entry of a model. `taken` does not include tokens of the cache."""
    return {
        "type": "usage",
        "model": model,
        "inputTokens": max(taken, 0),
        "outputTokens": given,
        "cacheReadTokens": cache_read,
        "cacheWriteTokens": cache_write,
    }


def result(text):
    """Return the result of the run as its only entry; no entry if the text is blank."""
    return [{"type": "result", "text": cut(text)}] if text and text.strip() else []


def text_of(content):
    """Return the text of an MCP tool's answer: its parts in order."""
    if isinstance(content, list):
        return "\n".join(part.get("text") or f"[{part.get('type')}]" for part in content)
    return content


def cut(text):
    """Return the text, cut to the length of a transcript line."""
    if _size(text) <= TEXT_BYTES_MAX:
        return text
    lengths = range(len(text) + 1)
    kept = bisect(lengths, TEXT_BYTES_MAX, key=lambda length: _size(text[:length])) - 1
    return f"{text[:kept]}\n[{len(text) - kept} characters more]"


def short(value):
    """Return the text or value; if it is long, cut and as text."""
    if isinstance(value, str):
        return cut(value)
    return value if _size(value) <= TEXT_BYTES_MAX else cut(json.dumps(value))


def _size(value):
    return len(json.dumps(value))


def tell(*entries):
    """Print entries of the transcript, without buffering."""
    for entry in entries:
        print(json.dumps(entry), flush=True)


def said_before(paths):
    """Return the end of the session's earlier conversation as text."""
    text = ""
    for path in reversed(paths):
        with Path(path).open(encoding="utf-8") as file:
            said = [line for line in map(_as_said, file) if line]
        text = "\n\n".join([*said, text] if text else said)
        if len(text) > HISTORY_CHARACTERS_MAX:
            break
    if not text:
        return ""
    if len(text) > HISTORY_CHARACTERS_MAX:
        text = f"[…]{text[-HISTORY_CHARACTERS_MAX:]}"
    # What was said may say anything, and ends where we say that it ends.
    while SAID_BEFORE in text:
        text = text.replace(SAID_BEFORE, "earlier")
    return f"<{SAID_BEFORE}>\n{text}\n</{SAID_BEFORE}>"


def _as_said(line):
    entry = json.loads(line)
    match entry.get("kind"):
        case "message":
            return f"{entry['role']}: {entry['text']}"
        case "tool":
            return f"tool {entry['name']}: {entry['input']} → {entry['output']}"
        case "text":
            return f"assistant: {entry['text']}"
    # A result is the last message once more.
    return ""


def main(start, reading):
    """Run the agent, print its lines as transcript entries, and exit as it exited.

    `start` makes a `Start` of what was told and of the arguments given to this program, which are
    handed on to the agent.
    """
    told = Told.read(sys.stdin.buffer.read())
    agent = _Process(start(told, tuple(sys.argv[1:])))
    said = reading(told)
    for line in agent.lines():
        tell(*_entries_of(line, said))
    status = agent.wait()
    tell(*said.unknown_events(), *said.end())
    if status == 1 and said.is_done and said.failure is None and said.was_excused:
        return
    if not status and not said.is_done and said.failure is None:
        said.failure = f"it broke off: its output ended without its {said.LAST_EVENT}"
    if said.failure is not None:
        print(f"{agent.name} failed: {said.failure}", file=sys.stderr)
    if status or said.failure is not None:
        raise SystemExit(128 - status if status < 0 else status or 1)


def nameless_file(text):
    """Return a file without a name, which is deleted when its last descriptor is closed."""
    file = TemporaryFile()  # noqa: SIM115 (who calls it closes it)
    file.write(text.encode(errors="replace"))
    file.seek(0)
    return file


def _entries_of(line, said):
    text = line.decode(errors="replace").strip()
    if not text:
        return []
    try:
        return said.entries(json.loads(text))
    except (ValueError, LookupError, TypeError, AttributeError):
        # No event, or one of a form that another version has: told as it stands.
        return [progress(text)]


class _Process:
    """The agent's process. It writes to the standard error of this program, so its errors are
    recorded if the run fails."""

    def __init__(self, start):
        self.name = start.arguments[0]
        self._process = None
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._hand_on)
        try:
            self._process = self._started(start)
        except OSError:
            # A folder of PATH that may not be entered is told in the place of a program that is
            # in none of them.
            if shutil.which(self.name) is not None:
                raise
            raise SystemExit(
                f"{self.name} is not installed, or not on the PATH of the server"
            ) from None

    def lines(self):
        """Yield the lines that it prints."""
        while line := self._process.stdout.readline(LINE_BYTES_MAX):
            if len(line) == LINE_BYTES_MAX:
                self._process.terminate()
                raise SystemExit(f"{self.name} printed a line of {LINE_BYTES_MAX} bytes or more")
            yield line

    def wait(self):
        """Return its exit status, negative for a signal."""
        return self._process.wait()

    @staticmethod
    def _started(start):
        with nameless_file(start.prompt) as prompt, nameless_file(start.system_prompt) as system:
            place = f"/dev/fd/{system.fileno()}"
            return subprocess.Popen(
                [each.replace("{system_prompt_file}", place) for each in start.arguments],
                stdin=prompt,
                stdout=subprocess.PIPE,
                env={**os.environ, **start.environment},
                pass_fds=(system.fileno(),),
            )

    def _hand_on(self, number, _):
        if self._process is None:
            raise SystemExit(128 + number)
        self._process.send_signal(number)
