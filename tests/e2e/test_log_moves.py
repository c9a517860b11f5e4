"""A log is moved: exported beside its server, imported elsewhere, served and continued."""

import json
from pathlib import Path

import psycopg
import pytest

from infrastructure.outbound.log.schema.append_lock import LOCK
from tests.support.servers.configurations import agent, command, configuration
from tests.support.servers.databases import Databases
from tests.support.servers.preloaded import run_command
from tests.support.servers.server import QUICK_LEASE_SECONDS, Server
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server

TASK = "carry the \x1b]0;lamp\x07 to ../../the harbour"


def _log(order: str, *arguments: object, url: str = "", data: Path | None = None) -> str:
    place = ["--database-url", url] if url else []
    place += ["--data-dir", str(data)] if data is not None else []
    done = run_command("log", order, *map(str, arguments), *place)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_server_goes_on_with_an_imported_log(databases: Databases, tmp_path: Path) -> None:
    first, second = databases.create(), databases.create()
    config = configuration(agent(), agent("loud", command("cat")))
    file = tmp_path / "log.ndjson"
    with Server(tmp_path / "one", config, database_url=first) as server:
        spoken = server.spawn(TASK, agentId="loud").json()["runId"]
        silent = server.spawn("hello").json()["runId"]
        ended = [server.run(item, "announced") for item in (spoken, silent)]
        written = server.http.get(f"/v1/runs/{spoken}/transcript").json()["items"]
        _log(
            "export", "--out", file, "--contents", "--transcripts", url=first, data=tmp_path / "one"
        )
    report = json.loads(_log("verify", file, "--output", "json"))
    assert report["ok"] is True
    assert "\x1b" not in file.read_text("utf-8")
    found = json.loads(_log("import", file, "--output", "json", url=second, data=tmp_path / "two"))
    assert found["events"] == report["events"]
    transcripts = tmp_path / "two" / "transcripts"
    with Server(tmp_path / "two", config, database_url=second) as server:
        again = [server.run(item, "announced") for item in (spoken, silent)]
        for before, after in zip(ended, again, strict=True):
            for changing in ("position", "runtimeMs", "elapsedMs"):
                before.pop(changing, None), after.pop(changing, None)
        assert [run["stage"] for run in again] == [run["stage"] for run in ended]
        assert [item.get("result") for item in again] == [run.get("result") for run in ended]
        assert server.http.get(f"/v1/runs/{spoken}/transcript").json()["items"] == written
        wait_for("the files of transcripts", lambda: list(transcripts.rglob("*.jsonl")))
        went_on = server.spawn("and on").json()["runId"]
        server.run(went_on, "announced")
    names = sorted(path.name for path in transcripts.rglob("*.jsonl"))
    was = sorted(path.name for path in (tmp_path / "one" / "transcripts").rglob("*.jsonl"))
    assert set(was) <= set(names)
    _log("verify", url=second, data=tmp_path / "two")
    third = databases.create()
    _log("export", "--out", tmp_path / "on.ndjson", url=second, data=tmp_path / "two")
    assert (tmp_path / "on.ndjson").read_bytes().splitlines()[1] == (
        file.read_bytes().splitlines()[1]
    )
    for url in (first, second, third):
        databases.drop(url)


def test_a_run_that_was_at_work_is_taken_over_from_a_server_that_the_copy_never_knew(
    databases: Databases, tmp_path: Path
) -> None:
    first, second = databases.create(), databases.create()
    slow = agent("slow", command("sleep", "30"))
    config = configuration(agent(), slow, leaseSeconds=QUICK_LEASE_SECONDS)
    file = tmp_path / "log.ndjson"
    with Server(tmp_path / "one", config, database_url=first) as server:
        run_id = server.spawn("wait", agentId="slow").json()["runId"]
        wait_for("the run to be at work", lambda: server.run(run_id)["stage"] == "started")
        flags = ("--out", file, "--contents", "--transcripts")
        _log("export", *flags, url=first, data=tmp_path / "one")
        server.kill()
    _log("import", file, url=second, data=tmp_path / "two")
    with Server(tmp_path / "two", config, database_url=second) as server:
        taken = server.run(run_id, "announced")
        assert taken["outcome"] == "error"
        events = server.http.get(f"/v1/runs/{run_id}/events").json()["items"]
        assert "interrupted" in str([event for event in events if event["type"] == "RunEnded"])
        assert server.spawn("hello").status_code == 201
    _log("verify", url=second, data=tmp_path / "two")
    for url in (first, second):
        databases.drop(url)


def test_a_server_does_not_start_while_a_file_is_imported(
    databases: Databases, tmp_path: Path
) -> None:
    url = databases.create()
    with psycopg.connect(url) as importing:
        # Lock that an import holds from its first line to its last.
        importing.execute(LOCK)
        importing.execute("SELECT position FROM log_head FOR UPDATE")
        server = Server(tmp_path / "one", configuration(agent()), database_url=url)
        with pytest.raises(AssertionError, match="it did not start"):
            server.start()
        assert "a file is being imported into this log" in server.log()
    databases.drop(url)


def test_an_export_goes_to_standard_output_and_a_file_is_not_replaced(
    databases: Databases, tmp_path: Path
) -> None:
    url = databases.create()
    place = ["--database-url", url, "--data-dir", str(tmp_path / "one")]
    done = run_command("log", "export", *place)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["type"] for line in done.stdout.splitlines()] == [
        "spawnlog.export.begin",
        "spawnlog.export.end",
    ]
    hostile = tmp_path / "a\x1b[31mred"
    hostile.write_text("mine")
    refused = run_command("log", "export", "--out", str(hostile), *place)
    assert refused.returncode == 2
    assert "already exists; name another file, or give --force" in refused.stderr
    assert "\x1b" not in refused.stderr
    unknown = run_command("log", "export", "--tree", "agent:main:nowhere", *place)
    assert unknown.returncode == 4
    nothing = tmp_path / "nothing.ndjson"
    unknown = run_command("log", "export", "--tree", "x", "--out", str(nothing), *place)
    assert unknown.returncode == 4
    assert not list(tmp_path.glob("nothing*"))
    wrong = tmp_path / "wrong.ndjson"
    wrong.write_text(done.stdout.replace('"events":"0"', '"events":"1"'))
    found = run_command("log", "verify", str(wrong))
    assert found.returncode == 1
    assert "error: line 2, position 1: it counts 1 events, but there are 0" in found.stderr
    beside = run_command("log", "verify", str(wrong), "--resume")
    assert beside.returncode == 2
    databases.drop(url)
