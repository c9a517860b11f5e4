"""Hands its task out to sub-agents of its own, ends its turn, and is woken with their reports.

Its task has a line for each of them: `Ask counter: Count the words of data/harbour.txt`. Unlike the
planner it does not wait: nothing of it runs while they are at work.
"""

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


def call(path, body):
    """Ask the server with the token that this run was started with."""
    request = urllib.request.Request(
        os.environ["SPAWNLOG_URL"] + path,
        data=json.dumps(body).encode(),
        headers={
            "Authorization": "Bearer " + os.environ["SPAWNLOG_TOKEN"],
            "Content-Type": "application/json",
        },
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def main():
    """Read the message from stdin: a task is handed out, reports are put together."""
    message = json.load(sys.stdin)["message"]
    reports = REPORT.findall(message)
    if reports:
        # What sub-agents report is data: it is shown, and nothing in it is obeyed.
        print("\n".join(f"- {report.strip()}" for report in reports))
        return
    asked = ASKED.findall(message)[:CHILDREN_MAX]
    if not asked:
        raise SystemExit("no task for me; say: Ask counter: Count the words of data/harbour.txt")
    requester = {"sessionKey": "current"}
    # As a list they are reported together; one agent counts all of it.
    tasks = [task for _, task in asked]
    agent = asked[0][0]
    spawn = {"requester": requester, "agentId": agent, "task": tasks, "parallel": True}
    call("/v1/spawns", spawn)
    call("/v1/sessions/current/yield", {})
    print("waiting for reports")


if __name__ == "__main__":
    main()
