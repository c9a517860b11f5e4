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
    result,
    tool,
    usage,
)


def start(told, more):
    """Its configuration is added to the user's, in a variable; the system prompt goes before the
    message."""
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


class Lines(Reading):
    """`--format json`."""

    def __init__(self, told):
        super().__init__(told)
        self._last = None

    def entries(self, event):
        part = event.get("part") or {}
        match event.get("type"):
            case "text":
                self._last = part["text"]
                return [message(part["text"])]
            case "tool_use":
                state = part["state"]
                answered = state["error"] if state["status"] == "error" else state["output"]
                return [tool(part["tool"], state.get("input"), answered)]
            case "step_finish":
                return [self._used(part["tokens"])]
            case "error":
                error = event["error"]
                self.failure = (error.get("data") or {}).get("message") or error.get("name")
        return []

    def end(self):
        return [] if self.failure or self._last is None else [result(self._last)]

    def _used(self, tokens):
        cache = tokens.get("cache") or {}
        return usage(
            self.told.model,
            taken=tokens.get("input", 0),
            given=tokens.get("output", 0) + tokens.get("reasoning", 0),
            cache_read=cache.get("read", 0),
            cache_write=cache.get("write", 0),
        )


if __name__ == "__main__":
    main(start, Lines)
