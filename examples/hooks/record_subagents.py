"""Record the sub-agents that a coding agent starts by itself, as external runs.

It is run by the coding agent's own hooks, once for each: the hook's input is JSON on stdin, what
the coding agent is to do is JSON on stdout. `settings.json` beside it names the hooks.

    PreToolUse, tool Agent or Task   asks for the spawn; a refusal denies the tool, with its text
    SubagentStart                    claims the run, and adds what spawnlog composed for it
    PreToolUse of a sub-agent        is a sign of life; once its run is to stop, denies the tool
    PostToolUse of a sub-agent       reports the tool call
    SubagentStop                     reports the end, with the last message and the tokens

The environment says where: SPAWNLOG_URL, SPAWNLOG_TOKEN (scopes `spawn` and `read`), and maybe
SPAWNLOG_REQUESTER_AGENT (`main`) and SPAWNLOG_HOOKS_DIR, a folder for what it remembers of the
sub-agents at work. A server that cannot be reached, or cannot answer, stops nobody from working:
the hook says so on stderr, and a tool call that was not taken is reported with the next one; an end
that was not taken is the server's to find out, when the lease is over. Nothing that the hooks are
given tells two sub-agents of one type apart that begin at the same moment: their runs may be
swapped. And one whose tool was allowed here and denied elsewhere leaves its run to the next one of
its type.
"""

import contextlib
import fcntl
import hashlib
import http.client
import json
import os
import stat
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SPAWNING_TOOLS = ("Agent", "Task")
LEASE_SECONDS = 3600
TIMEOUT_SECONDS = 20
TEXT_CHARACTERS_MAX = 100_000
UNSENT_MAX = 50
"""Maximum number of tool calls of a sub-agent that wait for a server that is away."""


class Refused(Exception):
    """The server said no: `code` is its stable word, the text for people; `is_for_now` when the
    same may be taken later."""

    def __init__(self, status: int, problem: dict[str, Any]) -> None:
        super().__init__(str(problem.get("detail", problem)))
        self.code = problem.get("code")
        self.is_for_now = status >= 500 or bool(problem.get("retryable"))


def ask(method: str, path: str, body: object = None, **headers: str) -> dict[str, Any]:
    """Send one request to the server."""
    request = urllib.request.Request(
        os.environ["SPAWNLOG_URL"].rstrip("/") + path,
        data=None if body is None else json.dumps(body).encode(),
        method=method,
        headers={
            "Authorization": f"Bearer {os.environ['SPAWNLOG_TOKEN']}",
            "Content-Type": "application/json",
            **headers,
        },
    )
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
            return dict(json.load(answer))
    except urllib.error.HTTPError as error:
        with error:
            try:
                problem = json.load(error)
            except ValueError:
                problem = {"detail": f"the answer was {error.code}"}
        raise Refused(error.code, problem) from None
    except (http.client.HTTPException, ValueError) as cut:
        raise OSError(f"the answer was cut off: {cut!r}") from None


def requester_of(hook: dict[str, Any]) -> str:
    """Return the session of the coding agent itself."""
    return (
        f"agent:{os.environ.get('SPAWNLOG_REQUESTER_AGENT', 'main')}:{hook['session_id']}".lower()
    )


@contextlib.contextmanager
def remembered(hook: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the stored state of a running sub-agent, locked: several hooks may run at once."""
    default = Path(tempfile.gettempdir()) / f"spawnlog-hooks-{os.getuid()}"
    folder = Path(os.environ.get("SPAWNLOG_HOOKS_DIR") or default)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = folder.lstat()
    if not stat.S_ISDIR(made.st_mode) or made.st_uid != os.getuid() or made.st_mode & 0o022:
        # Whoever else may write there would say which run is reported to.
        raise SystemExit(f"{folder} is not this user's alone: name another, SPAWNLOG_HOOKS_DIR")
    name = hashlib.sha256(f"{hook['session_id']}/{hook['agent_id']}".encode()).hexdigest()
    with (folder / f"{name}.json").open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        known = json.loads(file.read() or "{}")
        try:
            yield known
        finally:
            file.seek(0)
            file.truncate()
            json.dump(known, file)


def spawn(hook: dict[str, Any]) -> dict[str, Any] | None:
    """Request a spawn for a sub-agent; the rules decide."""
    given = hook["tool_input"]
    body = {
        "requester": {"sessionKey": requester_of(hook)},
        "task": given["prompt"],
        "label": given.get("description"),
        "agentId": agent_of(given.get("subagent_type")),
    }
    try:
        ask("POST", "/v1/spawns", body, **{"Idempotency-Key": hook["tool_use_id"]})
    except Refused as refused:
        if refused.code not in ("spawn_forbidden", "spawn_error"):
            raise
        return denied(str(refused))
    return None


def agent_of(kind: str | None) -> str:
    """Return the agent's id in spawnlog's configuration: the sub-agent's type."""
    return (kind or "general-purpose").lower()


def denied(reason: str) -> dict[str, Any]:
    """Return the answer that forbids the coding agent the tool."""
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": reason,
        }
    }


def start(hook: dict[str, Any]) -> dict[str, Any] | None:
    """Claim the first waiting run of its kind for a sub-agent that has begun."""
    query = urllib.parse.urlencode(
        {
            "requester": requester_of(hook),
            "agentId": agent_of(hook.get("agent_type")),
            "stage": "queued",
            "order": "asc",
        }
    )
    claim = {"executor": executor_of(hook), "leaseSeconds": LEASE_SECONDS}
    for run in ask("GET", f"/v1/runs?{query}")["items"]:
        try:
            mine = ask("POST", f"/v1/runs/{run['runId']}/claim", claim)
        except Refused as refused:
            if refused.code not in ("claimed_elsewhere", "run_over", "not_offered"):
                raise
            continue
        with remembered(hook) as known:
            known.update(runId=mine["runId"], epoch=mine["epoch"], next=1)
        context = mine["launch"]["systemPrompt"]
        return {
            "hookSpecificOutput": {"hookEventName": "SubagentStart", "additionalContext": context}
        }
    print("no run of this sub-agent waits: it is not on record", file=sys.stderr)
    return None


def executor_of(hook: dict[str, Any]) -> str:
    """Return a name for the claim that no other sub-agent has."""
    return hashlib.sha256(f"{hook['session_id']}/{hook['agent_id']}".encode()).hexdigest()[:32]


def keep(hook: dict[str, Any]) -> dict[str, Any] | None:
    """Send a heartbeat, whose answer says whether the run is to stop."""
    with remembered(hook) as known:
        if not known:
            return None
        beat = {"epoch": known["epoch"], "leaseSeconds": LEASE_SECONDS}
        try:
            answer = ask("POST", f"/v1/runs/{known['runId']}/heartbeat", beat)
        except Refused as refused:
            if refused.code not in ("run_over", "claim_over"):
                raise
            return denied(str(refused))
    if answer["stop"] is None:
        return None
    why = f": {answer['reason']}" if answer["reason"] else ""
    return denied(f"this sub-agent was {answer['stop']} by {answer['by']}{why}. End now.")


def report(hook: dict[str, Any]) -> None:
    """Report a tool call."""
    entry = {
        "kind": "tool",
        "name": hook["tool_name"],
        "input": _short(hook.get("tool_input")),
        "output": _short(hook.get("tool_response")),
    }
    took = hook.get("duration_ms")
    if isinstance(took, int | float):
        entry["durationMs"] = round(took)
    with remembered(hook) as known:
        if not known:
            return
        unsent = known.setdefault("unsent", [])
        if len(unsent) < UNSENT_MAX:
            unsent.append(entry)
        else:
            print("spawnlog: too much is unsent: a tool call is not on record", file=sys.stderr)
        send(known)


def send(known: dict[str, Any]) -> None:
    """Send the entries that the server has not taken yet. An entry keeps its number until there is
    an answer, so that none is recorded twice, or in the place of the next one."""
    while unsent := known.get("unsent"):
        body = {"epoch": known["epoch"], "first": known["next"], "entries": unsent[:1]}
        try:
            known["next"] = ask("POST", f"/v1/runs/{known['runId']}/transcript", body)["next"]
        except Refused as refused:
            if not refused.is_for_now:
                del unsent[0]
            raise
        del unsent[0]


def _short(value: object) -> str | None:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return None if value is None else text[:TEXT_CHARACTERS_MAX]


def end(hook: dict[str, Any]) -> None:
    """Report the end and the result of a sub-agent."""
    with remembered(hook) as known:
        if not known:
            return
        said = hook.get("last_assistant_message")
        body = {"epoch": known["epoch"], "outcome": "success", "result": said}
        usage = usage_of(hook.get("agent_transcript_path"))
        if usage:
            body["usage"] = usage
        try:
            send(known)
        except (OSError, Refused) as lost:
            print(f"spawnlog: its last tool calls are not on record: {lost}", file=sys.stderr)
        ask("POST", f"/v1/runs/{known['runId']}/end", body)


def usage_of(path: str | None) -> list[dict[str, Any]]:
    """Return the tokens by model, from the transcript that the coding agent keeps of its sub-agent.
    One message of the model may be several lines there, each with the same usage."""
    messages: dict[str, dict[str, Any]] = {}
    try:
        lines = Path(path).read_text("utf-8").splitlines() if path else []
    except OSError:
        return []
    for line in lines:
        with contextlib.suppress(ValueError, AttributeError, TypeError):
            message = json.loads(line)["message"]
            if message.get("usage"):
                messages[message["id"]] = message
    totals: dict[str, dict[str, Any]] = {}
    for message in messages.values():
        used, model = message["usage"], message["model"]
        total = totals.setdefault(model, {"model": model, "inputTokens": 0, "outputTokens": 0})
        for name, given in (
            ("inputTokens", "input_tokens"),
            ("outputTokens", "output_tokens"),
            ("cacheReadTokens", "cache_read_input_tokens"),
            ("cacheWriteTokens", "cache_creation_input_tokens"),
        ):
            total[name] = total.get(name, 0) + (used.get(given) or 0)
    return list(totals.values())


def act(hook: dict[str, Any]) -> dict[str, Any] | None:
    """Handle an event, and return the answer; tools of the coding agent itself are ignored."""
    event, is_subagents = hook["hook_event_name"], "agent_id" in hook
    if event == "PreToolUse" and not is_subagents and hook["tool_name"] in SPAWNING_TOOLS:
        return spawn(hook)
    if event == "SubagentStart":
        return start(hook)
    if event == "PreToolUse" and is_subagents:
        return keep(hook)
    if event == "PostToolUse" and is_subagents:
        report(hook)
    if event == "SubagentStop":
        end(hook)
    return None


def main() -> None:
    """Read the hook's input, act, and print the answer."""
    try:
        answer = act(json.load(sys.stdin))
    except (OSError, Refused) as away:
        print(f"spawnlog: {away}", file=sys.stderr)
        return
    if answer is not None:
        print(json.dumps(answer))


if __name__ == "__main__":
    main()
