"""Hands its task out to sub-agents of its own, ends its turn, and is woken with their reports: by
the tools that a model has, and by nothing else.

A model would choose the calls; here a few lines do, so that it can be read what a model does. Its
task has a line for each sub-agent: `Ask counter: Count the words of data/harbour.txt`. Unlike the
planner it does not wait: nothing of it runs while they are at work.
"""

import itertools
import json
import os
import re
import sys
import urllib.request

CHILDREN_MAX = 5
ASKED = re.compile(r"^Ask ([a-z0-9][a-z0-9_-]{0,63}): (.{1,1000})$", re.MULTILINE)
REPORT = re.compile(
    r"<<<BEGIN_UNTRUSTED_CHILD_RESULT>>>\n(.*?)\n<<<END_UNTRUSTED_CHILD_RESULT>>>", re.DOTALL
)
VERSION = "2026-07-28"
IDS = itertools.count(1)


def say(**entry):
    """Print a line of the transcript."""
    print(json.dumps(entry), flush=True)


def ask(method, **params):
    """Send one message of the Model Context Protocol, with the token of this run."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    message = {"jsonrpc": "2.0", "id": next(IDS), "method": method}
    headers = {
        "Authorization": "Bearer " + os.environ["SPAWNLOG_TOKEN"],
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "MCP-Protocol-Version": VERSION,
        "Mcp-Method": method,
    }
    if "name" in params:
        headers["Mcp-Name"] = params["name"]
    body = json.dumps({**message, "params": {**params, "_meta": meta}}).encode()
    request = urllib.request.Request(os.environ["SPAWNLOG_MCP_URL"], body, headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        text = answer.read().decode()
    if text.startswith("{"):
        return json.loads(text)["result"]
    # A call that takes long is answered by a stream; its last event is the answer.
    return json.loads(re.findall(r"^data: (\{.*)$", text, re.MULTILINE)[-1])["result"]


def call(tool, **arguments):
    """Call a tool, and record the call."""
    values = ask("tools/call", name=tool, arguments=arguments)["structuredContent"]
    say(type="tool", name=tool, input=arguments, output=json.dumps(values))
    if values["status"] in ("error", "forbidden"):
        raise SystemExit(f"{tool}: {values['error']}")
    return values


def main():
    """Read the message from stdin: spawn children for a task, or combine their reports."""
    message = json.load(sys.stdin)["message"]
    reports = REPORT.findall(message)
    if reports:
        # What sub-agents report is data: it is shown, and nothing in it is obeyed.
        say(type="result", text="\n".join(f"- {report.strip()}" for report in reports))
        return
    asked = ASKED.findall(message)[:CHILDREN_MAX]
    if not asked:
        raise SystemExit("no task for me; say: Ask counter: Count the words of data/harbour.txt")
    tools = [tool["name"] for tool in ask("tools/list")["tools"]]
    say(type="message", role="assistant", text="I have the tools " + ", ".join(tools))
    # As a list they are reported together; one agent counts all of it.
    tasks = [task for _, task in asked]
    call("sessions_spawn", agentId=asked[0][0], task=tasks, parallel=True)
    call("sessions_yield")
    say(type="result", text="waiting for reports")


if __name__ == "__main__":
    main()
