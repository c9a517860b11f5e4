"""kill -9 during the fork of a conversation: a child begins with all of it, or nothing remains."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from domain.context.fork import INBOX_NOTE
from tests.support.builders.submitted_transcripts import KEPT, tell
from tests.support.servers.child_programs import waiter
from tests.support.servers.configurations import agent, configuration, python
from tests.support.servers.databases import Databases
from tests.support.servers.hooked import ATTACHING
from tests.support.servers.server import QUICK_LEASE_SECONDS, Server, serving
from tests.support.tiers import nightly_but
from tests.support.waiting import wait_for

pytestmark = pytest.mark.kill

STARTED = ["ScriptsResolved", "PreparationStarted"]
BEGUN = ["StepBegun:context_fork"]
RESUMED = ["PreparationResumed"]
TAKEN = ["StepTaken:context_fork"]
REST = ["SessionCreated", "RunQueued", "RunClaimed", "RunStarted", "RunEnded", "RunAnnounced"]
UNDONE = ["undo:attachments:done", "undo:context_fork:done"]
AT_THE_FORK = [*STARTED, *BEGUN, *RESUMED, *BEGUN, *TAKEN, *REST]
MOMENTS = {
    "before StepBegun:context_fork": [*RESUMED, *STARTED, *BEGUN, *TAKEN, *REST],
    "after StepBegun:context_fork": AT_THE_FORK,
    "before step:context_fork": AT_THE_FORK,
    "after step:context_fork": AT_THE_FORK,
    "before StepTaken:context_fork": AT_THE_FORK,
    "after SessionCreated": [*STARTED, *BEGUN, *TAKEN, *REST],
}
ATTACHED = [{"name": "notes.txt", "content": "x"}]
DEATHS = (
    "before SpawnRefused",
    "after SpawnRefused",
    "before undo:context_fork",
    "after undo:context_fork",
    "before EffectAttempted:undo:context_fork",
)


# Prints the conversation that it finds.
_LOOK = """
import json, os, pathlib, stat, sys
told = json.load(sys.stdin)
paths = told["history"]
files = [
    {
        "mode": oct(stat.S_IMODE(os.lstat(path).st_mode)),
        "lines": [json.loads(line) for line in pathlib.Path(path).read_bytes().splitlines()],
    }
    for path in paths
]
found = {"paths": paths, "variable": os.environ.get("SPAWNLOG_HISTORY"), "files": files}
part = pathlib.Path(sys.argv[1], os.environ["SPAWNLOG_RUN_ID"] + ".part")
part.write_text(json.dumps(found))
part.rename(part.with_suffix(".seen"))
print("I remember")
"""


def forking(folder: Path) -> dict[str, Any]:
    """Return a configuration with lanes of width 1 and these agents: `heir` inspects its beginning,
    no attachment can be written for `blocked`, and `waiter` waits to be released.
    """
    homes = {name: folder.parent / "homes" / name for name in ("heir", "blocked")}
    for home in homes.values():
        home.mkdir(parents=True)
    (homes["blocked"] / ".openclaw").touch()
    return configuration(
        agent("main", default=True),
        waiter("waiter", folder),
        *(agent(name, python(_LOOK, folder), workspace=str(home)) for name, home in homes.items()),
        archiveAfterMinutes=0,
        maxConcurrent=1,
        leaseSeconds=QUICK_LEASE_SECONDS,
        tools=ATTACHING,
    )


def forked(key: str, agent_id: str = "heir", **more: Any) -> dict[str, Any]:
    """Return a spawn that is to begin with the conversation of a session called by the key."""
    name = "".join(letter if letter.isalnum() else "-" for letter in key.lower())
    requester = {"sessionKey": f"agent:{agent_id}:{name}"}
    body = {"key": f"{agent_id}-{key}", "context": "fork", "cleanup": "delete"}
    return {**body, "requester": requester, **more}


def submit(server: Server, session: str, **more: Any) -> None:
    """Submit the transcript of a session."""
    answer = tell(server.http, session, **more)
    assert answer.status_code == 200, answer.text


def beginnings(server: Server) -> list[str]:
    """Return the files with the beginnings of children, and remains of attempts to write them."""
    folder = server.data_dir / "transcripts"
    return sorted(path.name for path in folder.rglob("*.fork.jsonl*"))


def stored_entries(server: Server, run_id: str) -> int:
    """Return how many entries a run has."""
    query = "SELECT count(*) FROM transcript_entries WHERE run_id = %s"
    return int(server.ask_database(query, run_id)[0][0])


def remembered(server: Server, run_id: str) -> dict[str, Any]:
    """Return the findings of a run's child."""
    return dict(json.loads(server.note(f"{run_id}.seen")))


@pytest.fixture(scope="module")
def heirs(databases: Databases) -> Iterator[Server]:
    """Yield a server whose log is verified at the end, and must not contain the conversation."""
    with serving(databases, forking, dies=True) as server:
        yield server
        server.ensure_running()
        assert "arbour" not in json.dumps(server.whole_log())


@pytest.fixture
def server(heirs: Server) -> Server:
    heirs.ensure_running()
    return heirs


def begins_with_it(server: Server, body: dict[str, Any]) -> str:
    """Repeat the request; assert that its child found the conversation in its one file. Return the
    run's id.
    """
    answer = server.spawn_again(**body)
    assert answer.status_code == 201, answer.text
    assert answer.json()["note"] == INBOX_NOTE
    run_id = str(answer.json()["runId"])
    run = server.run(run_id, "archived")
    assert (run["outcome"], run["contextMode"]) == ("success", "fork")
    found = remembered(server, run_id)
    (path,) = found["paths"]
    assert found["variable"] == path
    assert path.endswith(f"/heir/{run['sessionId']}.fork.jsonl")
    (file,) = found["files"]
    assert file["mode"] == "0o600"
    first, *rest = file["lines"]
    assert (first["kind"], first["sequence"], first["entries"]) == ("session", 1, len(KEPT))
    kept = [
        {key: line[key] for key in line if key not in ("sequence", "recordedAt")} for line in rest
    ]
    assert kept == [{"kind": kind, **members} for kind, members in KEPT]
    path = Path(run["transcriptPath"])
    wait_for("the file of the transcript", path.exists)
    sealed = path.read_bytes().splitlines()
    kinds = [json.loads(line)["kind"] for line in sealed]
    assert kinds == ["session", *(kind for kind, _ in KEPT), "message", "text"]
    assert json.loads(sealed[-1])["text"].strip() == "I remember"
    assert len(sealed) == stored_entries(server, run_id) == len(KEPT) + 3
    wait_for("the file to go", lambda: not beginnings(server))
    assert server.session(body["requester"]["sessionKey"])["activeChildren"] == 0
    return run_id


@pytest.mark.parametrize("moment", nightly_but(MOMENTS, ["after step:context_fork"]))
def test_a_child_begins_with_it_when_its_server_is_killed(server: Server, moment: str) -> None:
    body = forked(moment)
    submit(server, body["requester"]["sessionKey"])
    server.die_during(moment, **body)
    server.restart()
    run_id = begins_with_it(server, body)
    assert server.steps(run_id) == ["SpawnRequested", *MOMENTS[moment], "RunArchived"]


def test_what_was_told_after_the_spawn_is_not_taken_over_by_who_goes_on(server: Server) -> None:
    body = forked("later")
    session = body["requester"]["sessionKey"]
    submit(server, session)
    server.die_during("before step:context_fork", **body)
    # The run's own lease lasts longer than it takes to tell something else.
    server.start()
    submit(server, session, entries=[{"kind": "text", "text": "later"}])
    server.expire_leases(server.url)
    begins_with_it(server, body)


def test_a_file_that_has_gone_is_written_anew_for_the_runtime(server: Server) -> None:
    body = forked("gone")
    submit(server, body["requester"]["sessionKey"])
    server.die_during("after SessionCreated", **body)
    (name,) = beginnings(server)
    (server.data_dir / "transcripts" / "heir" / name).unlink()
    server.restart()
    begins_with_it(server, body)


@pytest.mark.parametrize(
    "moment",
    nightly_but(["after step:context_fork", "after SessionCreated"], ["after SessionCreated"]),
)
def test_its_requester_is_told_of_too_much_also_by_who_goes_on(server: Server, moment: str) -> None:
    body = forked(f"large {moment}")
    submit(server, body["requester"]["sessionKey"], totalTokens=170_000)
    server.die_during(moment, **body)
    server.restart()
    answer = server.spawn_again(**body)
    assert answer.json()["note"] == (
        f"{INBOX_NOTE} Parent context is too large to fork (170000/100000 tokens); "
        "starting with isolated context instead."
    )
    run_id = answer.json()["runId"]
    assert server.run(run_id, "archived")["contextMode"] == "isolated"
    assert remembered(server, run_id) == {"paths": [], "variable": None, "files": []}


def test_nothing_of_it_is_left_when_a_later_step_fails(server: Server) -> None:
    body = forked("in vain", "blocked", attachments=ATTACHED)
    submit(server, body["requester"]["sessionKey"])
    moment, *others = DEATHS
    server.die_during(moment, **body)
    for moment in others:
        server.die_again(moment)
    server.restart()
    answer = server.spawn_again(**body)
    assert (answer.status_code, answer.json()["rule"]) == (422, "attachments")
    run_id = answer.json()["runId"]
    wait_for("all to be undone", lambda: server.steps(run_id)[-2:] == UNDONE)
    assert stored_entries(server, run_id) == 0
    assert beginnings(server) == []
    assert server.session(body["requester"]["sessionKey"])["activeChildren"] == 0


def test_the_file_of_a_child_that_never_started_goes_with_its_session(server: Server) -> None:
    first = server.accepted("waiter", session="agent:main:before")
    server.note(f"{first}.began")
    body = forked("stopped")
    submit(server, body["requester"]["sessionKey"])
    answer = server.spawn(**body)
    assert answer.status_code == 201, answer.text
    assert len(beginnings(server)) == 1
    run_id = answer.json()["runId"]
    server.stop_run(run_id)
    assert server.run(run_id, "archived")["outcome"] == "stopped"
    assert beginnings(server) == []
    server.let_go(first)
    server.run(first, "announced")
