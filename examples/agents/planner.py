"""Spawn sub-agents for the parts of a task, wait for them, and combine their results.

Its task has a line for each of them: `Ask counter: Count the words of data/harbour.txt`. It calls
the server back with the token that it was started with, which is good for its own session alone.
"""

import json
import os
import re
import sys
import urllib.error
import urllib.request

CHILDREN_MAX = 5
WAIT_SECONDS = 30
ASKED = re.compile(r"^Ask ([a-z0-9][a-z0-9_-]{0,63}): (.{1,1000})$", re.MULTILINE)


def call(method, path, body=None):
    """Return the server's answer, also that of a refusal."""
    request = urllib.request.Request(
        os.environ["SPAWNLOG_URL"] + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Authorization": "Bearer " + os.environ["SPAWNLOG_TOKEN"],
            "Content-Type": "application/json",
        },
    )
    try:
        with urllib.request.urlopen(request, timeout=WAIT_SECONDS * 2) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as refusal:
        return json.load(refusal)


def ask(agent, task):
    """Spawn a child of this session."""
    requester = {"sessionKey": os.environ["SPAWNLOG_SESSION_KEY"]}
    return call("POST", "/v1/spawns", {"requester": requester, "agentId": agent, "task": task})


def finding(agent, accepted):
    """Return the outcome of a child in one line."""
    if "runId" not in accepted or accepted.get("status") != "accepted":
        return f"{agent} was not asked: {accepted.get('detail')}"
    run = call("GET", f"/v1/runs/{accepted['runId']}?wait={WAIT_SECONDS}s&until=ended")
    result = run.get("resultText") or run.get("error") or "nothing yet"
    return f"{agent} ({run.get('status')}): {result}"


def main():
    """Read the task from stdin, spawn all children, then wait for each."""
    asked = ASKED.findall(json.load(sys.stdin)["message"])[:CHILDREN_MAX]
    if not asked:
        raise SystemExit("no task for me; say: Ask counter: Count the words of data/harbour.txt")
    children = [(agent, ask(agent, task)) for agent, task in asked]
    for agent, accepted in children:
        print(finding(agent, accepted))


if __name__ == "__main__":
    main()
