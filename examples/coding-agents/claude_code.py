"""Claude Code as a child or an orchestrator: `claude -p`.

Its flags are those of its CLI reference, the `mcp.json` with variables in it that of its page on
MCP, the lines of `stream-json` those of the Agent SDK reference (`SDKMessage`); all of them as
version 2.1.197 has them.
"""

import json

from started_agent import (
    SERVER_NAME,
    TOKEN_VARIABLE,
    OpenCalls,
    Reading,
    RunningTotals,
    Start,
    main,
    message,
    progress,
    result,
    text_of,
    tool,
)

EFFORTS = {"low", "medium", "high", "xhigh", "max"}


def start(told, more):
    """Return the command of the agent. It leaves out the agent's own MCP servers
    (`--strict-mcp-config`): a child has the tools of its session, and no account of the user who
    started the server."""
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


# Kinds of events that say nothing of the work.
LEFT_OUT = {
    "auth_status",
    "conversation_reset",
    "prompt_suggestion",
    "rate_limit_event",
    "stream_event",
    "tool_progress",
    "tool_use_summary",
}
# With these the model did not come to its end.
CUT_OFF = {
    "max_tokens": "cut off at the model's limit of output tokens (max_tokens)",
    "model_context_window_exceeded": "cut off at the end of the model's context window",
    "refusal": "the model refused to answer (refusal)",
}


class Lines(Reading):
    """Reader of `stream-json`."""

    LAST_EVENT = "result event"

    def __init__(self, told):
        super().__init__(told)
        self._calls = OpenCalls()
        self._totals = RunningTotals()
        self._last = ""

    def entries(self, event):
        match event.get("type"):
            case "system":
                return self._system(event)
            case "assistant":
                return list(self._said(event))
            case "user":
                return list(self._answered(event))
            case "result":
                return self._ended(event)
            case kind if kind in LEFT_OUT:
                return []
            case kind:
                return self.unknown(kind)

    def _system(self, event):
        match event.get("subtype"):
            case "init":
                return [progress(self._began(event))]
            case "api_retry":
                attempt = f"{event.get('attempt')} of {event.get('max_retries')}"
                return [progress(f"the request is repeated ({attempt}): {event.get('error')}")]
            case "permission_denied":
                return [progress(f"{event.get('tool_name')} denied: {event.get('message')}")]
        return []

    @staticmethod
    def _began(event):
        servers = [f"{one['name']} {one['status']}" for one in event.get("mcp_servers") or ()]
        return ", ".join([f"claude with {event.get('model')}", *servers])

    def _said(self, event):
        sub_agent = _sub_agent(event)
        if not sub_agent:
            # A further turn began, which has a result of its own.
            self.is_done = False
        for block in _blocks(event):
            match block.get("type"):
                case "text" if not block["text"].strip():
                    pass
                case "text" if sub_agent:
                    yield progress(f"{sub_agent}{block['text']}")
                case "text" if event.get("error"):
                    # Not said by the model: the program tells of an error as a message of it.
                    yield progress(block["text"])
                case "text":
                    self._last = block["text"]
                    yield message(block["text"])
                case "tool_use":
                    name = f"{sub_agent}{block['name']}"
                    self._calls.begin(block["id"], (name, block.get("input")))

    def _answered(self, event):
        for block in _blocks(event):
            if block.get("type") == "tool_result":
                call, took = self._calls.end(block["tool_use_id"])
                name, given = call or (f"{_sub_agent(event)}tool", None)
                yield tool(name, given, text_of(block.get("content")), took)

    def _ended(self, event):
        self.is_done = True
        self.failure = self._why_failed(event)
        entries = []
        # The totals of all models and sub-agents so far; `usage` has the main turn alone.
        for model, used in (event.get("modelUsage") or {}).items():
            entries += self._totals.usage(
                model,
                taken=used.get("inputTokens", 0),
                given=used.get("outputTokens", 0),
                cache_read=used.get("cacheReadInputTokens", 0),
                cache_write=used.get("cacheCreationInputTokens", 0),
            )
        if self.failure is None:
            text = event.get("result") or ""
            entries += result(text if text.strip() else self._last)
        self._last = ""
        return entries

    @staticmethod
    def _why_failed(event):
        if event.get("is_error") or event.get("subtype") != "success":
            told = event.get("errors") or [event.get("result") or event.get("subtype")]
            return "; ".join(map(str, told))
        return CUT_OFF.get(event.get("stop_reason"))


def _sub_agent(event):
    """Return the name to put before what a sub-agent of its own said or called; "" for none."""
    if event.get("parent_tool_use_id") is None:
        return ""
    return f"{event.get('subagent_type') or 'sub-agent'}: "


def _blocks(event):
    content = event["message"].get("content") or []
    return [] if isinstance(content, str) else content


if __name__ == "__main__":
    main(start, Lines)
