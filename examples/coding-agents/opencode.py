"""opencode as a child or an orchestrator: `opencode run`.

Its flags and variables are those of its page on the CLI, the server and `{env:NAME}` those of its
pages on MCP servers and on the configuration; the lines of `--format json` are those of its `run`
command and the parts of its SDK; all of them as version 1.18.33 has them.
"""

import json

from started_agent import (
    SERVER_NAME,
    TOKEN_VARIABLE,
    Reading,
    Start,
    main,
    message,
    progress,
    result,
    tool,
    usage,
)


def start(told, more):
    """Return the command of the agent. A variable adds its configuration to the user's; the system
    prompt goes before the message."""
    arguments = ["opencode", "run", "--format", "json"]
    environment = {}
    if told.model:
        arguments += ["--model", told.model]
    if told.thinking and told.thinking != "off":
        arguments += ["--variant", told.thinking]
    if told.mcp_url:
        environment["OPENCODE_CONFIG_CONTENT"] = json.dumps(_configuration(told.mcp_url))
    return Start(
        (*arguments, *more), prompt=told.prompt(with_system_prompt=True), environment=environment
    )


def _configuration(url):
    server = {
        "type": "remote",
        "url": url,
        "oauth": False,
        "headers": {"Authorization": f"Bearer {{env:{TOKEN_VARIABLE}}}"},
    }
    return {"mcp": {SERVER_NAME: server}}


# Why a step ended. After these it goes on with a further step, unless it breaks off.
GOES_ON = {"tool-calls", "unknown"}
CUT_OFF = {
    "length": "cut off at the model's limit of output tokens (length)",
    "content-filter": "the answer was blocked by a filter (content-filter)",
    "error": "its last step ended with an error",
}


class Lines(Reading):
    """Reader of `--format json`, which has only the calls of opencode's own sub-agents."""

    LAST_EVENT = "last step (a step_finish with another reason than tool-calls)"

    def __init__(self, told):
        super().__init__(told)
        self._last = ""
        self._error = None

    def entries(self, event):
        part = event.get("part") or {}
        match event.get("type"):
            case "text":
                if not part["text"].strip():
                    return []
                self._last = part["text"]
                return [message(part["text"])]
            case "reasoning":
                return [progress(part["text"])]
            case "tool_use":
                state = part["state"]
                answered = state["error"] if state["status"] == "error" else state["output"]
                return [tool(part["tool"], state.get("input"), answered, _milliseconds(state))]
            case "step_start":
                self.is_done = False
                return []
            case "step_finish":
                return self._step(part)
            case "error":
                return self._failed(event["error"])
            case "done":
                return self._rejected(event.get("rejected"))
            case kind:
                return self.unknown(kind)

    def end(self):
        self.failure = self.failure or self._error
        return [] if self.failure or not self.is_done else result(self._last)

    def _failed(self, error):
        """Note an error. opencode may recover from it, and exits with 1 even then."""
        said = (error.get("data") or {}).get("message") or error.get("name")
        self._error = said or "an error without a message"
        self.is_done = False
        return [progress(f"error: {self._error}")]

    @staticmethod
    def _rejected(permissions):
        names = ", ".join(permissions or ())
        return [progress(f"it asked for permissions that nobody gave: {names}")] if names else []

    def _step(self, part):
        reason = part.get("reason")
        self.is_done = reason not in GOES_ON
        if self.is_done:
            self.failure = CUT_OFF.get(reason)
            self.was_excused = self.was_excused or self._error is not None
            self._error = None
        tokens = part["tokens"]
        cache = tokens.get("cache") or {}
        return [
            usage(
                self.told.model,
                taken=tokens.get("input", 0),
                given=tokens.get("output", 0) + tokens.get("reasoning", 0),
                cache_read=cache.get("read", 0),
                cache_write=cache.get("write", 0),
            )
        ]


def _milliseconds(state):
    """Return how long a call took by the times in its state; None without both of them."""
    time = state.get("time") or {}
    began, ended = time.get("start"), time.get("end")
    is_timed = isinstance(began, int | float) and isinstance(ended, int | float)
    return ended - began if is_timed else None


if __name__ == "__main__":
    main(start, Lines)
