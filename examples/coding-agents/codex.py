"""Codex CLI as a child or an orchestrator: `codex exec`.

Its flags are those of its page on non-interactive mode, the keys those of its configuration
reference (`mcp_servers.<id>.url`, `model_reasoning_effort` and their neighbours), the lines of
`--json` those of non-interactive mode and of its SDK (`ThreadEvent`); all of them as version
0.169.0 has them.
"""

import json

from started_agent import (
    SERVER_NAME,
    TOKEN_VARIABLE,
    WAIT_SECONDS_MAX,
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

EFFORTS = {"minimal", "low", "medium", "high", "xhigh"}
SERVER = f"mcp_servers.{SERVER_NAME}"


def start(told, more):
    """Return the command. Codex takes a system prompt only as an argument: it is in the message."""
    arguments = ["codex", "exec", "--json", "--skip-git-repo-check", "--ephemeral"]
    if told.model:
        arguments += ["--model", told.model_of("openai")]
    if told.thinking in EFFORTS:
        arguments += _set("model_reasoning_effort", told.thinking)
    if told.mcp_url:
        arguments += _set(f"{SERVER}.url", told.mcp_url)
        arguments += _set(f"{SERVER}.bearer_token_env_var", TOKEN_VARIABLE)
        # Longer than the longest wait for sub-agents; its default is a minute.
        arguments += ["-c", f"{SERVER}.tool_timeout_sec={WAIT_SECONDS_MAX}"]
        # Nobody is there to be asked, and what a session may do its server decides.
        arguments += _set(f"{SERVER}.default_tools_approval_mode", "approve")
    return Start((*arguments, *more, "-"), prompt=told.prompt(with_system_prompt=True))


def _set(key, text):
    # A TOML string, which a JSON one of such texts is, too.
    return ["-c", f"{key}={json.dumps(text)}"]


class Lines(Reading):
    """Reader of `--json`."""

    LAST_EVENT = "turn.completed event"

    def __init__(self, told):
        super().__init__(told)
        self._calls = OpenCalls()
        self._totals = RunningTotals()
        self._last = ""

    def entries(self, event):
        match event.get("type"):
            case "item.started":
                self._calls.begin(event["item"]["id"])
            case "item.completed":
                return self._item(event["item"])
            case "turn.started":
                self.is_done = False
            case "turn.completed":
                self.is_done, self.failure = True, None
                return self._used(event["usage"])
            case "turn.failed":
                self.failure = event["error"]["message"]
            case "error":
                # One that it recovers from, unless the turn fails as well.
                return [progress(event["message"])]
            case "thread.started" | "item.updated":
                pass
            case kind:
                return self.unknown(kind)
        return []

    def end(self):
        return [] if self.failure or not self.is_done else result(self._last)

    def _used(self, used):
        # The totals of the whole thread. Its input tokens include those of the cache.
        cached = used.get("cached_input_tokens", 0)
        written = used.get("cache_write_input_tokens", 0)
        return self._totals.usage(
            self.told.model,
            taken=used.get("input_tokens", 0) - cached - written,
            given=used.get("output_tokens", 0),
            cache_read=cached,
            cache_write=written,
        )

    def _item(self, item):
        _, took = self._calls.end(item.get("id"))
        match item["type"]:
            case "agent_message":
                self._last = item["text"]
                return [message(item["text"])] if item["text"].strip() else []
            case "reasoning":
                return [progress(item["text"])]
            case "error":
                return [progress(item["message"])]
            case "command_execution":
                ended = {"output": item["aggregated_output"], "exitCode": item.get("exit_code")}
                return [tool("shell", item["command"], ended, took)]
            case "mcp_tool_call":
                name = f"{item['server']}.{item['tool']}"
                answered = item.get("error") or text_of((item.get("result") or {}).get("content"))
                return [tool(name, item.get("arguments"), answered, took)]
            case "collab_tool_call":
                # A sub-agent of its own: what that says is not printed.
                name = f"agents.{item['tool']}"
                return [tool(name, item.get("prompt"), item["agents_states"], took)]
            case "file_change":
                return [tool("file_change", item["changes"], item["status"], took)]
            case "web_search":
                return [tool("web_search", item["query"], None, took)]
            case "todo_list":
                return [progress("\n".join(map(_plan_line, item["items"])))]
            case kind:
                return self.unknown(f"item {kind}")


def _plan_line(step):
    return f"[{'x' if step['completed'] else ' '}] {step['text']}"


if __name__ == "__main__":
    main(start, Lines)
