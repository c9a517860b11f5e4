"""`spawnlog spawn`, `run respawn`, `run send` and `run steer` against a server."""

import base64
import json
import os
import threading
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from infrastructure.inbound.command_line.client import arguments as spawn_arguments
from infrastructure.inbound.command_line.display.run import attachments_summary
from tests.support.builders.api_runs import FIRST, KEY, SECOND, listed, run_of
from tests.support.servers.command_line import Command
from tests.support.servers.recorded_api import Asked, RecordedApi, Reply, problem

SPAWNS, MESSAGES, RESPAWN = "/v1/spawns", f"/v1/runs/{FIRST}/messages", f"/v1/runs/{FIRST}/respawn"
SUBMITS = {
    SPAWNS: ("spawn", "x"),
    MESSAGES: ("run", "send", FIRST, "x"),
    RESPAWN: ("run", "respawn", FIRST),
}
TAKEN: dict[str, Any] = {
    "status": "accepted",
    "runId": SECOND,
    "childSessionKey": KEY,
    "sessionId": "33333333-0000-4000-8000-000000000003",
    "label": "harbour",
    "mode": "run",
    "modelApplied": False,
    "warnings": ["thinking is not used"],
}
QUEUED = {**{name: TAKEN[name] for name in TAKEN if name != "modelApplied"}, "status": "queued"}
BATCH = "99999999-0000-4000-8000-000000000009"
TWO = ("--parallel", "--task", "high water", "--task", "low water")
every_submit = pytest.mark.parametrize("path", SUBMITS)


def ended(run_id: str = SECOND, **members: Any) -> Reply:
    return Reply(run_of(run_id, **{"resultText": "12 words", **members}))


@pytest.fixture
def accepting(api: RecordedApi) -> RecordedApi:
    """Return a server that accepts a spawn, a message and a respawn of `FIRST`."""
    for path in SUBMITS:
        api.on("POST", path, Reply(TAKEN, status=201))
    return api


# Requests, and the printed answers.


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (SPAWNS, {"requester": {"sessionKey": "main"}, "task": "x"}),
        (MESSAGES, {"message": "x"}),
        (RESPAWN, {}),
    ],
)
def test_submit_sends_only_what_was_given(
    path: str, body: dict[str, Any], spawnlog: Command, accepting: RecordedApi
) -> None:
    result = spawnlog(*SUBMITS[path])
    assert (result.exit_code, accepting.asked[0].path) == (0, path)
    assert accepting.asked[0].body == body
    assert len(accepting.asked[0].headers["idempotency-key"]) == 36
    for shown in (SECOND, "thinking is not used", "the requested model is not used"):
        assert shown in result.stdout


@pytest.mark.parametrize("words", [*SUBMITS.values(), ("run", "steer", FIRST, "x")])
def test_quiet_prints_only_run_id(
    words: tuple[str, ...], spawnlog: Command, accepting: RecordedApi
) -> None:
    result = spawnlog(*words, "--quiet")
    assert (result.exit_code, result.output) == (0, f"{SECOND}\n")
    assert json.loads(spawnlog(*words, "-q", "-o", "json").stdout)["childSessionKey"] == KEY


@pytest.mark.parametrize("path", [SPAWNS, MESSAGES])
def test_text_may_come_from_standard_input(
    path: str, spawnlog: Command, accepting: RecordedApi
) -> None:
    words = [*SUBMITS[path][:-1], "-", "--idempotency-key", "key-1", "-o", "json"]
    result = spawnlog(*words, given="from\nstdin")
    (request,) = accepting.asked
    assert (request.body.get("task") or request.body["message"]) == "from\nstdin"
    assert request.headers["idempotency-key"] == "key-1"
    assert json.loads(result.stdout) == TAKEN


@pytest.mark.parametrize(
    ("option", "text", "member"),
    [
        ("--preamble", "from\nstdin", {"contextPreamble": "from\nstdin"}),
        ("--shared", '{"goal": 1}', {"sharedContext": {"goal": 1}}),
    ],
)
def test_option_may_come_from_standard_input(
    option: str,
    text: str,
    member: dict[str, Any],
    spawnlog: Command,
    accepting: RecordedApi,
) -> None:
    assert spawnlog("spawn", "Count", option, "-", given=text).exit_code == 0
    assert spawnlog("run", "respawn", FIRST, option, "-", given=text).exit_code == 0
    spawned, respawned = (request.body for request in accepting.asked if request.method == "POST")
    assert member.items() <= spawned.items()
    assert respawned == {"changes": member}


@pytest.mark.parametrize(
    ("arguments", "first", "second"),
    [
        (("-", "--preamble", "-"), "preamble", "task"),
        (("-", "--parallel", "--task", "-"), "task", "task"),
        (("--file", "-", "--shared", "-"), "shared context", "request"),
    ],
)
def test_standard_input_is_one_argument(
    arguments: tuple[str, ...], first: str, second: str, spawnlog: Command, accepting: RecordedApi
) -> None:
    result = spawnlog("spawn", *arguments, given='{"task": "Count"}')
    assert (result.exit_code, accepting.asked) == (2, [])
    refused = f"error: standard input is the {first}, so the {second} cannot be -\n"
    assert result.stderr == refused


def test_half_a_character_is_for_the_server_to_refuse(spawnlog: Command, api: RecordedApi) -> None:
    api.on("POST", SPAWNS, problem(422, code="invalid_request", detail="not Unicode"))
    assert spawnlog("spawn", "caf\udce9").exit_code == 2
    assert api.asked[0].body["task"] == "caf\udce9"


def test_options_override_request_file(
    spawnlog: Command, accepting: RecordedApi, tmp_path: Path
) -> None:
    file = tmp_path / "request.json"
    request = {"requester": {"sessionKey": "agent:a:main"}, "task": "Count", "label": "one"}
    file.write_text(json.dumps(request), "utf-8")
    assert spawnlog("spawn", "--file", str(file), "--label", "two", "--to", "42").exit_code == 0
    requester = {"sessionKey": "agent:a:main", "to": "42"}
    assert accepting.asked[0].body == {"requester": requester, "task": "Count", "label": "two"}
    file.write_text("[]", "utf-8")
    wrong = spawnlog("spawn", "--file", str(file))
    assert wrong.exit_code == 2
    assert 'is not a JSON object, such as {"task": ' in wrong.stderr


def test_child_is_named_by_key_or_label(spawnlog: Command, accepting: RecordedApi) -> None:
    newest = run_of(FIRST, label="reader", continues=SECOND)
    accepting.on("GET", "/v1/runs", listed(newest, run_of(SECOND, label="reader")))
    for name in ("reader", KEY):
        assert spawnlog("run", "send", name, "go on").exit_code == 0
        assert accepting.asked[-1].path == MESSAGES


def test_queued_message_shows_its_place(spawnlog: Command, api: RecordedApi) -> None:
    api.on("POST", MESSAGES, Reply({**QUEUED, "place": 2}, status=202))
    result = spawnlog("run", "send", FIRST, "and then?")
    assert result.exit_code == 0
    assert ["status", "queued"] in [line.split() for line in result.stdout.splitlines()]
    assert ["place", "2"] in [line.split() for line in result.stdout.splitlines()]


def test_steer_replaces_run(spawnlog: Command, api: RecordedApi) -> None:
    steered = {"status": "accepted", "runId": SECOND, "replaces": FIRST, "text": "steered it."}
    api.on("POST", MESSAGES, Reply({**steered, "childSessionKey": KEY}, status=202))
    result = spawnlog("run", "steer", FIRST, "do this instead")
    assert api.asked[0].body == {"message": "do this instead", "mode": "steer"}
    assert result.exit_code == 0
    assert f"replaces  {FIRST}" in result.stdout
    assert "steered it." in result.stdout


def test_respawn_sends_changes(spawnlog: Command, accepting: RecordedApi) -> None:
    options = ["--requester", "agent:main:b", "--scripts", "recorded", "--up-to", "4"]
    options += ["--config-revision", "3", "--set", "context=null", "--set", 'requester.to="C1"']
    options += ["--label", "again", "--set", "label=null", "--task", "-", "-o", "json"]
    result = spawnlog("run", "respawn", FIRST, *options, given="from\nstdin")
    assert accepting.asked[0].body == {
        "changes": {
            "task": "from\nstdin",
            "label": None,
            "requester": {"sessionKey": "agent:main:b", "to": "C1"},
            "context": None,
        },
        "scripts": "recorded",
        "transcript": {"upTo": 4},
        "configRevision": 3,
    }
    assert json.loads(result.stdout) == {**TAKEN, "respawnedFrom": FIRST}


def test_lineage_is_shown_on_both_runs(spawnlog: Command, api: RecordedApi) -> None:
    made = run_of(SECOND, respawnedFrom=FIRST, respawns=[])
    first = run_of(FIRST, respawnedFrom=None, respawns=[SECOND])
    api.on("GET", "/v1/runs", listed(first), listed(made, first))
    shown = spawnlog("run", "list", "--respawned-from", "last").stdout
    assert api.asked[-1].query["respawnedFrom"] == FIRST
    assert "RESPAWNED FROM" in shown
    api.on("GET", f"/v1/runs/{FIRST}", Reply(first))
    api.on("GET", f"/v1/runs/{SECOND}", Reply(made))
    assert f"respawned as  {SECOND}" in spawnlog("run", "get", FIRST).stdout
    assert f"respawned from  {FIRST}" in spawnlog("run", "get", SECOND).stdout


def test_run_shows_its_dependencies(spawnlog: Command, api: RecordedApi) -> None:
    others = [
        {"runId": FIRST, "name": "scout", "require": "ended", "state": "waiting"},
        {"runId": FIRST, "name": FIRST, "require": "success", "state": "met"},
    ]
    api.on("GET", f"/v1/runs/{SECOND}", ended(status="waiting", dependsOn=others))
    shown = " ".join(spawnlog("run", "get", SECOND).stdout.split())
    assert f"scout (run {FIRST}), with any outcome, waiting" in shown
    assert f"run {FIRST}, met" in shown


# Refusals and failures.


@every_submit
@pytest.mark.parametrize(
    ("status", "code", "exit_code"),
    [(409, "no_session", 3), (422, "invalid_request", 2), (404, "not_found", 4)],
)
def test_problem_sets_exit_code(
    path: str, status: int, code: str, exit_code: int, spawnlog: Command, api: RecordedApi
) -> None:
    api.on("POST", path, problem(status, code=code, detail="not now"))
    result = spawnlog(*SUBMITS[path])
    start = "refused" if exit_code == 3 else "error"
    assert (result.exit_code, result.stdout) == (exit_code, "")
    assert result.stderr.startswith(f"{start}: not now")
    if exit_code == 3:
        refused = spawnlog(*SUBMITS[path], "-o", "json")
        assert (refused.exit_code, json.loads(refused.stdout)["code"]) == (3, code)


@every_submit
def test_lost_answer_names_idempotency_key(path: str, spawnlog: Command, api: RecordedApi) -> None:
    keys = []

    def lost(request: Asked) -> Reply:
        keys.append(request.headers["idempotency-key"])
        return Reply("", break_off=True)

    api.on("POST", path, lost)
    result = spawnlog(*SUBMITS[path])
    assert result.exit_code == 5
    assert "may have been" in result.stderr
    assert f"--idempotency-key {keys[0]}" in result.stderr


@pytest.mark.parametrize("words", [*SUBMITS.values(), ("run", "steer", FIRST, "x")])
def test_refused_connection_did_nothing(spawnlog: Command, words: tuple[str, ...]) -> None:
    result = spawnlog(*words, "--url", "http://127.0.0.1:1")
    assert result.exit_code == 5
    assert "no server answers at http://127.0.0.1:1" in result.stderr
    assert "may have been" not in result.stderr
    assert "--idempotency-key" not in result.stderr


# Waiting for the result.


@every_submit
def test_wait_shows_result_of_new_run(path: str, spawnlog: Command, accepting: RecordedApi) -> None:
    accepting.on("GET", f"/v1/runs/{SECOND}", ended())
    result = spawnlog(*SUBMITS[path], "--wait")
    assert (result.exit_code, result.stdout) == (0, "12 words\n")
    assert "done after 1.2s" in result.stderr
    failed = ended(status="failed", outcome="error", resultText=None, error="the harbour is closed")
    accepting.on("GET", f"/v1/runs/{SECOND}", failed)
    result = spawnlog(*SUBMITS[path], "--wait")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "ended as failed: the harbour is closed" in result.stderr


@every_submit
def test_wait_shows_warnings_of_the_request(
    path: str, spawnlog: Command, accepting: RecordedApi
) -> None:
    accepting.on("GET", f"/v1/runs/{SECOND}", ended())
    result = spawnlog(*SUBMITS[path], "--wait")
    assert result.stdout == "12 words\n"
    assert "warning: thinking is not used\n" in result.stderr
    assert "warning: the requested model is not used\n" in result.stderr
    assert "warning" not in spawnlog(*SUBMITS[path], "--wait", "-q").stderr


def test_dependency_with_any_outcome_is_an_object(
    spawnlog: Command, accepting: RecordedApi
) -> None:
    any_outcome = {"run": "review", "require": "ended"}
    flags = ("--depends-on", "research", "--depends-on", json.dumps(any_outcome))
    spawnlog("spawn", "Count", *flags)
    assert accepting.asked[0].body["dependsOn"] == ["research", any_outcome]
    assert "--depends-on takes JSON" in spawnlog("spawn", "Count", "--depends-on", "{x").stderr


@pytest.mark.server
def test_wait_lasts_until_announced(spawnlog: Command, accepting: RecordedApi) -> None:
    run = f"/v1/runs/{SECOND}"
    accepting.on("GET", run, ended(stage="started"), ended(stage="ended"), ended())
    assert spawnlog("spawn", "Count", "--wait").exit_code == 0
    waits = [request.query for request in accepting.asked if request.path == run]
    assert waits == [{"wait": "30s", "until": "announced"}] * 3


@pytest.mark.server
def test_wait_survives_server_that_is_away(spawnlog: Command, accepting: RecordedApi) -> None:
    lost = Reply("{", break_off=True)
    accepting.on("GET", f"/v1/runs/{SECOND}", lost, problem(503, detail="not ready"), ended())
    assert spawnlog("spawn", "Count", "--wait").exit_code == 0


WARNED = {"text": "warning: 1 line of the output is not an entry", "source": "warning"}
STDERR = {"text": "standard error:\nmodel not found", "source": "stderr"}


@pytest.mark.parametrize(
    ("result", "shown", "hidden"),
    [
        (None, ["the run has no result", "model not found"], []),
        ("12 words", ["12 words"], ["model not found"]),
    ],
)
def test_wait_shows_notes_on_output(
    spawnlog: Command, accepting: RecordedApi, result: str, shown: list[str], hidden: list[str]
) -> None:
    accepting.on("GET", f"/v1/runs/{SECOND}", ended(resultText=result))
    entries = [{"sequence": 3, "kind": "progress", "body": body} for body in (WARNED, STDERR)]
    page = Reply({"items": entries, "nextAfter": None})
    accepting.on("GET", f"/v1/runs/{SECOND}/transcript", page)
    answer = spawnlog("spawn", "Count", "--wait")
    assert answer.exit_code == 0
    assert accepting.asked[-1].query == {"last": "2"}
    assert WARNED["text"] in answer.output
    assert all(word in answer.output for word in shown)
    assert not any(word in answer.output for word in hidden)


def test_wait_prints_whole_run_as_json(spawnlog: Command, accepting: RecordedApi) -> None:
    timeout = ended(stage="archived", outcome="timeout", status="timeout")
    accepting.on("GET", f"/v1/runs/{SECOND}", timeout)
    result = spawnlog("spawn", "Count", "--wait", "-o", "jsonl")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["outcome"] == "timeout"


def test_result_cannot_steer_terminal(spawnlog: Command, accepting: RecordedApi) -> None:
    accepting.on("GET", f"/v1/runs/{SECOND}", ended(resultText="done\x1b]52;c;eA==\x07\nok"))
    assert spawnlog("spawn", "Count", "--wait").stdout == "done\\x1b]52;c;eA==\\x07\nok\n"


def test_wait_shows_result_of_continuing_run(spawnlog: Command, accepting: RecordedApi) -> None:
    skipped: dict[str, Any] = {"announcement": {"state": "skipped"}, "continuedBy": FIRST}
    accepting.on("GET", f"/v1/runs/{SECOND}", ended(**skipped))
    accepting.on("GET", f"/v1/runs/{FIRST}", ended(FIRST, resultText="all of it"))
    result = spawnlog("spawn", "Count", "--wait")
    assert (result.exit_code, result.stdout) == (0, "all of it\n")
    assert f"run {FIRST} continues in its place" in result.stderr


def test_wait_ends_for_dropped_message(spawnlog: Command, api: RecordedApi) -> None:
    api.on("POST", MESSAGES, Reply({**QUEUED, "place": 1}, status=202))
    api.on("GET", f"/v1/sessions/{quote(KEY, safe='')}", Reply({"queue": []}))
    result = spawnlog("run", "send", FIRST, "and then?", "--wait")
    assert result.exit_code == 2
    assert "the message was dropped" in result.stderr


# Several tasks.


@pytest.fixture
def batch(api: RecordedApi) -> RecordedApi:
    runs = [
        {"runId": FIRST, "label": "tide-1", "childSessionKey": f"{KEY}1"},
        {"runId": SECOND, "label": "tide-2", "warnings": ["thinking is not used"]},
    ]
    api.on("POST", SPAWNS, Reply({"status": "accepted", "batchId": BATCH, "runs": runs}, 201))
    return api


def test_parallel_tasks_are_a_list(spawnlog: Command, batch: RecordedApi) -> None:
    result = spawnlog("spawn", *TWO, "--label", "tide")
    assert result.exit_code == 0
    assert batch.asked[0].body == {
        "requester": {"sessionKey": "main"},
        "task": ["high water", "low water"],
        "parallel": True,
        "label": "tide",
    }
    for part in (BATCH, FIRST, SECOND, "tide-2", "thinking is not used"):
        assert part in result.stdout
    shown = json.loads(spawnlog("spawn", *TWO, "--output", "json").stdout)
    assert [run["runId"] for run in shown["runs"]] == [FIRST, SECOND]
    assert spawnlog("spawn", "-", "--parallel", "--task", "low water", given="in").exit_code == 0
    assert batch.asked[-1].body["task"] == ["in", "low water"]


def test_quiet_prints_run_ids_of_batch(spawnlog: Command, batch: RecordedApi) -> None:
    assert spawnlog("spawn", *TWO, "--quiet").output == f"{FIRST}\n{SECOND}\n"


def test_wait_lasts_until_all_tasks_ended(spawnlog: Command, batch: RecordedApi) -> None:
    failed = ended(FIRST, outcome="error", status="failed", error="the harbour is closed")
    batch.on("GET", f"/v1/runs/{FIRST}", failed)
    batch.on("GET", f"/v1/runs/{SECOND}", ended())
    result = spawnlog("spawn", *TWO, "--wait")
    assert result.exit_code == 1
    assert "12 words" in result.stdout
    assert "the harbour is closed" in result.stderr


# Attached files.


def test_attached_text_is_utf8_and_all_else_base64(
    spawnlog: Command, accepting: RecordedApi, tmp_path: Path
) -> None:
    contents = {
        "notes.txt": "dreißig\r\n".encode(),
        "marked.txt": b"\xef\xbb\xbfx",
        "empty": b"",
        "photo.png": b"\x89PNG\r\n\xff",
        "nul.txt": b"a\0b",
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    options = [word for name in contents for word in ("--attach", str(tmp_path / name))]
    assert spawnlog("spawn", "Read", *options).exit_code == 0
    sent = accepting.asked[0].body["attachments"]
    assert [file["name"] for file in sent] == list(contents)
    assert [file["encoding"] for file in sent] == ["utf8", "utf8", "utf8", "base64", "base64"]
    decoded = [
        base64.b64decode(file["content"], validate=True)
        if file["encoding"] == "base64"
        else file["content"].encode()
        for file in sent
    ]
    assert decoded == list(contents.values())


def test_attached_file_is_named_without_folders(
    spawnlog: Command, accepting: RecordedApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a b").write_text("x")
    monkeypatch.chdir(tmp_path)
    assert spawnlog("spawn", "Read", "--attach", "./in/../in/a b").exit_code == 0
    assert [file["name"] for file in accepting.asked[0].body["attachments"]] == ["a b"]


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("written", "in x"),
        ("removing", "being removed from x"),
        ("removed", "removed from x"),
        ("left_in_place", "left in place in x"),
        ("later", "in x"),
    ],
)
def test_attachments_summary_tells_their_state(state: str, words: str) -> None:
    receipt = {"count": 1, "totalBytes": 3, "relDir": "x", "state": state}
    assert attachments_summary(receipt) == f"1 file(s), 3 bytes, {words} of the workspace"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("missing", "No such file or directory"),
        ("lost\x1b[2J", "No such file or directory"),
        ("folder", "Is a directory"),
        ("folder/..", "Is a directory"),
        (os.fsdecode(b"\xff.txt"), "its name is not UTF-8; attach a copy with another name"),
    ],
)
def test_unreadable_attachment_is_refused(
    name: str, why: str, spawnlog: Command, accepting: RecordedApi, tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "lost\x1b[2J").symlink_to("missing")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.txt")).write_bytes(b"x")
    result = spawnlog("spawn", "Read", "--attach", f"{tmp_path}/{name}")
    assert (result.exit_code, accepting.asked) == (2, [])
    assert result.stderr.startswith("error: cannot attach ")
    assert why in result.stderr
    assert "\x1b" not in result.stderr


def test_attachments_are_read_up_to_their_limit(
    spawnlog: Command, accepting: RecordedApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spawn_arguments, "ATTACHED_BYTES_MAX", 10)
    for name, size in (("a", 6), ("b", 4), ("c", 5)):
        (tmp_path / name).write_bytes(b"\xff" * size)
    within = spawnlog("spawn", "x", "--attach", f"{tmp_path}/a", "--attach", f"{tmp_path}/b")
    assert within.exit_code == 0
    for second in (f"{tmp_path}/c", "/dev/zero"):
        over = spawnlog("spawn", "x", "--attach", f"{tmp_path}/a", "--attach", second)
        assert over.exit_code == 2
        assert f"cannot attach {second}: all attached files together" in over.stderr
    assert len(accepting.asked) == 1


@pytest.mark.parametrize(("content", "fits"), [(b"x" * 100, True), (b"\x01" * 40, False),
                                               (b"\xff" * 130, False)])  # fmt: skip
def test_attachments_fit_into_a_request(
    content: bytes,
    fits: bool,
    spawnlog: Command,
    accepting: RecordedApi,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(spawn_arguments, "REQUEST_BYTES_MAX", 200)
    (tmp_path / "file").write_bytes(content)
    result = spawnlog("spawn", "x", "--attach", f"{tmp_path}/file")
    assert (result.exit_code, len(accepting.asked)) == ((0, 1) if fits else (2, 0))
    if not fits:
        assert "the attached files are too large: encoded they have " in result.stderr
        assert "bytes, and a server accepts 200; attach fewer, or one archive" in result.stderr


def test_attached_pipe_is_read_to_its_end(
    spawnlog: Command, accepting: RecordedApi, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text("through a pipe"))
    writer.start()
    assert spawnlog("spawn", "Read", "--attach", str(pipe)).exit_code == 0
    writer.join()
    (file,) = accepting.asked[0].body["attachments"]
    assert file == {"name": "pipe", "content": "through a pipe", "encoding": "utf8"}


# Shared context.


def test_later_shared_option_wins_key_by_key(
    spawnlog: Command, accepting: RecordedApi, tmp_path: Path
) -> None:
    file = tmp_path / "shared.json"
    file.write_bytes(b'\xef\xbb\xbf{"goal": "from a file", "more": 1}\n')
    options = ["--shared", '{"goal": "a", "first": [1, null]}', "--shared", f"@{file}"]
    assert spawnlog("spawn", "x", *options, "--shared", '{"more": "ü"}').exit_code == 0
    sent = accepting.asked[0].body["sharedContext"]
    assert list(sent.items()) == [("goal", "from a file"), ("first", [1, None]), ("more", "ü")]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("missing", "cannot be read: No such file or directory"),
        ("folder", "cannot be read: Is a directory"),
        ("binary", "is not UTF-8"),
        ("list\x1b", "is not a JSON object"),
    ],
)
def test_shared_file_that_cannot_be_used_is_refused(
    name: str,
    says: str,
    spawnlog: Command,
    accepting: RecordedApi,
    tmp_path: Path,
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "list\x1b").write_text("[]")
    result = spawnlog("spawn", "x", "--shared", f"@{tmp_path / name}")
    assert (result.exit_code, accepting.asked) == (2, [])
    assert says in result.stderr
    assert "\x1b" not in result.stderr


def test_shared_context_has_one_limit(
    spawnlog: Command, accepting: RecordedApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spawn_arguments, "SHARED_BYTES_MAX", 10)
    file = tmp_path / "shared.json"
    for text, code in (('{"ü": 123}', 2), ('{"ü": 12}', 0)):
        file.write_text(text, "utf-8")
        for argument in ("-", f"@{file}"):
            result = spawnlog("spawn", "x", "--shared", argument, given=text)
            assert result.exit_code == code
            assert ("is larger than 10 bytes" in result.stderr) == (code == 2)
