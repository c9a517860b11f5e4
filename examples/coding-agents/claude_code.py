"""Claude Code as a child or an orchestrator: `claude -p`.

Its flags are those of its CLI reference, the `mcp.json` with variables in it that of its page on
MCP, the lines of `stream-json` those of the Agent SDK reference (`SDKMessage`); all of them as
version 2.1.197 has them.
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
    text_of,
    tool,
    usage,
)

EFFORTS = {"low", "medium", "high", "xhigh", "max"}


def start(told, more):
    """Its own servers are left out (`--strict-mcp-config`): a child has the tools that its session
    has, and no account of whoever started the server."""
    arguments = ["claude", "-p", "--output-format", "stream-json", "--verbose"]
    arguments += ["--strict-mcp-config", "--no-session-persistence"]
    if told.system_prompt:
        arguments += ["--append-system-prompt-file", "{system_prompt_file}"]
    if told.model:
        arguments += ["--model", told.model_of("anthropic")]
    if told.thinking in EFFORTS:
        arguments += ["--effort", told.thinking]
    if told.mcp_url:
        arguments += ["--mcp-config", json.dumps(_servers(told.mcp_url))]
        arguments += ["--allowedTools", f"mcp__{SERVER_NAME}"]
    return Start(
        (*arguments, *more),
        prompt=told.prompt(with_system_prompt=False),
        system_prompt=told.system_prompt,
    )


def _servers(url):
    headers = {"Authorization": f"Bearer ${{{TOKEN_VARIABLE}}}"}
    server = {"type": "http", "url": url, "headers": headers}
    # It begins when it has the tools, and is shown all of them.
    return {"mcpServers": {SERVER_NAME: {**server, "alwaysLoad": True}}}


class Lines(Reading):
    """`stream-json`."""

    def __init__(self, told):
        super().__init__(told)
        self._calls = {}

    def entries(self, event):
        match event.get("type"):
            case "system" if event.get("subtype") == "init":
                return [progress(self._began(event))]
            case "assistant":
                return list(self._said(_blocks(event)))
            case "user":
                return list(self._answered(_blocks(event)))
            case "result":
                return self._ended(event)
        return []

    @staticmethod
    def _began(event):
        servers = [f"{one['name']} {one['status']}" for one in event.get("mcp_servers") or ()]
        return ", ".join([f"claude with {event.get('model')}", *servers])

    def _said(self, blocks):
        for block in blocks:
            match block.get("type"):
                case "text" if block["text"].strip():
                    yield message(block["text"])
                case "tool_use":
                    self._calls[block["id"]] = (block["name"], block.get("input"))

    def _answered(self, blocks):
        for block in blocks:
            if block.get("type") == "tool_result":
                name, given = self._calls.pop(block["tool_use_id"], ("tool", None))
                yield tool(name, given, text_of(block.get("content")))

    def _ended(self, event):
        entries = [
            usage(
                model,
                taken=used.get("inputTokens", 0),
                given=used.get("outputTokens", 0),
                cache_read=used.get("cacheReadInputTokens", 0),
                cache_write=used.get("cacheCreationInputTokens", 0),
            )
            for model, used in (event.get("modelUsage") or {}).items()
        ]
        if event.get("is_error") or event.get("subtype") != "success":
            told = event.get("errors") or [event.get("result") or event.get("subtype")]
            self.failure = "; ".join(map(str, told))
            return entries
        return [*entries, result(event.get("result") or "")]


def _blocks(event):
    content = event["message"].get("content") or []
    return [] if isinstance(content, str) else content


if __name__ == "__main__":
    main(start, Lines)
