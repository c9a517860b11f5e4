"""Small programs for children of end-to-end tests. They wait for files, so that tests control
them.
"""

from pathlib import Path
from typing import Any

from tests.support.servers.configurations import agent, python, shell

WAIT_SECONDS_MAX = 60
AWAIT_FILE = """
def await_file(seconds, *paths):
    import sys, time
    deadline = time.monotonic() + float(seconds)
    while not any(path.exists() for path in paths):
        if time.monotonic() > deadline:
            sys.exit(f"nobody wrote {paths[0].name}")
        time.sleep(0.01)
"""
"""Prefix of a program that waits until one of these paths exists."""

ASK = """
def ask(method, path, body=None):
    import json, os, urllib.error, urllib.request
    request = urllib.request.Request(
        os.environ["SPAWNLOG_URL"] + path,
        data=None if body is None else json.dumps(body).encode(),
        method=method,
        headers={
            "Authorization": "Bearer " + os.environ["SPAWNLOG_TOKEN"],
            "Content-Type": "application/json",
        },
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refusal:
        return refusal.code, json.load(refusal)
"""
"""Prefix of a program that calls its server with its own token."""


_WAITER = (
    AWAIT_FILE
    + """
import os, pathlib, sys
began, name = pathlib.Path(sys.argv[1]), sys.argv[2]
began.mkdir(exist_ok=True)
run = os.environ["SPAWNLOG_RUN_ID"]
(began / f"{run}.began").write_text(str(os.getpid()))
await_file(sys.argv[3], began / f"{run}.{name}", began / name)
print("let go")
"""
)
_HOLDER = """
printf %s "$SPAWNLOG_TOKEN" > "{folder}/$SPAWNLOG_RUN_ID.part"
mv "{folder}/$SPAWNLOG_RUN_ID.part" "{folder}/$SPAWNLOG_RUN_ID.began"
while [ ! -e "{folder}/$SPAWNLOG_RUN_ID.go" ]; do sleep 0.02; done
echo over
"""
_ORCHESTRATOR = (
    ASK
    + """
import json, os, sys
def spawn(requester, agent):
    body = {"requester": {"sessionKey": requester}, "task": "help", "agentId": agent,
            "label": "helper"}
    return ask("POST", "/v1/spawns", body)

own = os.environ["SPAWNLOG_SESSION_KEY"]
told = json.load(sys.stdin)
foreign = told["message"].rsplit("foreign run: ", 1)[1].strip()
said = {
    "spawnOfItsOwn": spawn(own, sys.argv[2]),
    "spawnForAnother": spawn(os.environ["SPAWNLOG_REQUESTER_SESSION_KEY"], sys.argv[2]),
    "itself": ask("GET", "/v1/runs/" + os.environ["SPAWNLOG_RUN_ID"]),
    "another": ask("GET", "/v1/runs/" + foreign),
    "stopOfAnother": ask("POST", "/v1/runs/" + foreign + "/stop", {}),
    "inboxOfAnother": ask(
        "GET", "/v1/sessions/" + os.environ["SPAWNLOG_REQUESTER_SESSION_KEY"] + "/announcements"
    ),
}
with open(os.path.join(sys.argv[1], os.environ["SPAWNLOG_RUN_ID"] + ".json"), "w") as file:
    json.dump({"token": os.environ["SPAWNLOG_TOKEN"], "said": said}, file)
print("I have asked for help")
"""
)
_DAEMON = """
import os, pathlib, signal, sys, time
folder = pathlib.Path(sys.argv[1])
def note(name):
    (folder / f"{name}.part").write_text(str(os.getpid()))
    (folder / f"{name}.part").rename(folder / name)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.chdir("/")
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        for descriptor in range(3):
            os.close(descriptor)
        note("grandchild")
        time.sleep(600)
    os._exit(0)
os.wait()
note("child")
time.sleep(600)
"""


def waiter(agent_id: str, folder: Path) -> dict[str, Any]:
    """Return an agent whose run ends when there is a file `go` or `<run id>.go` in the folder; it
    notes `<run id>.began` there, with its process id."""
    return agent(agent_id, python(_WAITER, folder, "go", WAIT_SECONDS_MAX))


def holder(folder: Path, **runtime: Any) -> dict[str, Any]:
    """Return the agent `holder`, whose run ends when there is a file `<run id>.go` in the folder;
    it notes `<run id>.began` there, with its token."""
    return agent("holder", shell(_HOLDER.format(folder=folder), **runtime))


def orchestrator(agent_id: str, folder: Path, child: str) -> dict[str, Any]:
    """Return an agent that spawns `child`, tries forbidden acts, and ends before its child.

    It leaves its token and the answers in `<run id>.json` of the folder.
    """
    return agent(agent_id, python(_ORCHESTRATOR, folder, child))


def daemon(agent_id: str, folder: Path) -> dict[str, Any]:
    """Return an agent that never ends, with a grandchild that left its group and session and closed
    its pipes; they note their process ids in `child` and `grandchild`."""
    return agent(agent_id, python(_DAEMON, folder))
