"""Gemini CLI as a child or an orchestrator: `gemini`, without a terminal.

Its flags are those of its CLI reference, the variables and the settings those of its configuration
reference, the lines of `stream-json` those of its headless mode reference; all of them as version
0.61.0 has them.
"""

from datetime import datetime
from pathlib import Path

from started_agent import (
    SERVER_NAME,
    Reading,
    RunningTotals,
    Start,
    main,
    message,
    progress,
    result,
    tell,
    tool,
)


def start(told, more):
    """Return the command of the agent. It can only replace its system prompt, so ours goes before
    the message. It reads MCP servers from files alone: `workspaces/gemini/.gemini/settings.json`
    shows what to write there, with the address and the token as variables."""
    arguments = ["gemini", "--output-format", "stream-json"]
    arguments += ["--allowed-mcp-server-names", SERVER_NAME]
    if told.mcp_url and not any(map(_names_server, (Path.cwd(), Path.home()))):
        tell(progress(f"no {SERVER_NAME} in .gemini/settings.json here: it has no tools of ours"))
    if told.model:
        arguments += ["--model", told.model_of("google")]
    return Start(
        (*arguments, *more),
        prompt=told.prompt(with_system_prompt=True),
        # Without trust it leaves the settings of a folder out, and without a terminal it cannot
        # ask for it. `--skip-trust` comes too late: the settings have been read by then.
        environment={"GEMINI_CLI_TRUST_WORKSPACE": "true"},
    )


def _names_server(folder):
    settings = folder / ".gemini" / "settings.json"
    return settings.is_file() and f'"{SERVER_NAME}"' in settings.read_text("utf-8")


class Lines(Reading):
    """Reader of `stream-json`."""

    LAST_EVENT = "result event"

    def __init__(self, told):
        super().__init__(told)
        self._calls = {}
        self._pieces = []
        self._last = ""
        self._error = None
        self._totals = RunningTotals()

    def entries(self, event):
        if event.get("type") == "message":
            if event.get("role") == "assistant":
                self._pieces.append(event["content"])
                if event["content"].strip():
                    # It recovered from an error before.
                    self._error = None
            return []
        return [*self._said(), *self._others(event)]

    def end(self):
        entries = self._said()
        return entries if self.failure or not self.is_done else [*entries, *result(self._last)]

    def _said(self):
        """Return the message entry of the pieces since the last tool call; none if blank."""
        text, self._pieces = "".join(self._pieces), []
        if not text.strip():
            return []
        self._last = text
        return [message(text)]

    def _others(self, event):
        match event.get("type"):
            case "init":
                return [progress(f"gemini with {event.get('model')}")]
            case "tool_use":
                self._error = None
                self._calls[event["tool_id"]] = event
                return []
            case "tool_result":
                call = self._calls.pop(event["tool_id"], {})
                answered = event.get("error") or event.get("output")
                name, took = call.get("tool_name", "tool"), _milliseconds(call, event)
                return [tool(name, call.get("parameters"), answered, took)]
            case "error":
                if event.get("severity") == "error":
                    self._error = event["message"]
                return [progress(event["message"])]
            case "result":
                return self._ended(event)
            case kind:
                return self.unknown(kind)

    def _ended(self, event):
        self.is_done = True
        # An error that nothing followed ended its work, whatever the status says.
        self.failure = (event.get("error") or {}).get("message") or self._error
        if event.get("status") != "success":
            self.failure = self.failure or event.get("status") or "no status"
        entries = []
        # The totals of the session.
        for model, used in ((event.get("stats") or {}).get("models") or {}).items():
            entries += self._totals.usage(
                model,
                taken=used.get("input", 0),
                # What it thought counts as output, and stands in the total alone.
                given=max(
                    used.get("output_tokens", 0),
                    used.get("total_tokens", 0) - used.get("input_tokens", 0),
                ),
                cache_read=used.get("cached", 0),
            )
        return entries


def _milliseconds(call, answer):
    """Return the time between two events by their own timestamps; None without valid ones."""
    try:
        began, ended = (datetime.fromisoformat(event["timestamp"]) for event in (call, answer))
        return (ended - began).total_seconds() * 1000
    except (KeyError, TypeError, ValueError):
        return None


if __name__ == "__main__":
    main(start, Lines)
