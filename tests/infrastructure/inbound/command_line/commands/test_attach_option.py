"""`spawnlog spawn --attach`: which files are sent, and how."""

import base64
import os
import threading
from pathlib import Path

import pytest

from infrastructure.inbound.command_line.client import arguments as spawn_arguments
from infrastructure.inbound.command_line.display.run import attachments_summary
from tests.support.servers.command_line import Command
from tests.support.servers.recorded_api import RecordedApi, Reply, problem

RUN = "11111111-0000-4000-8000-000000000001"
RECEIPT = {"count": 1, "totalBytes": 3, "files": [], "relDir": ".openclaw/attachments/x\x1b[2J"}
ACCEPTED = Reply({"status": "accepted", "runId": RUN, "attachments": RECEIPT}, status=201)


@pytest.fixture
def accepting(api: RecordedApi) -> RecordedApi:
    api.on("POST", "/v1/spawns", ACCEPTED)
    return api


def test_text_is_sent_as_text_and_all_else_as_base64(
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


def test_a_file_is_named_without_its_folders(
    spawnlog: Command,
    accepting: RecordedApi,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a b").write_text("x")
    monkeypatch.chdir(tmp_path)
    assert spawnlog("spawn", "Read", "--attach", "./in/../in/a b").exit_code == 0
    assert [file["name"] for file in accepting.asked[0].body["attachments"]] == ["a b"]


def test_where_files_are_wanted_and_how_light_the_prompt_is(
    spawnlog: Command, accepting: RecordedApi, tmp_path: Path
) -> None:
    (tmp_path / "a").write_text("x")
    options = ["--attach", str(tmp_path / "a"), "--attach-as", "/srv/in", "--light-context"]
    result = spawnlog("spawn", "Read", *options)
    assert result.exit_code == 0
    body = accepting.asked[0].body
    assert (body["attachAs"], body["lightContext"]) == ({"mountPath": "/srv/in"}, True)
    assert (
        "1 file(s), 3 bytes, in .openclaw/attachments/x\\x1b[2J of the workspace" in result.stdout
    )


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
def test_what_has_become_of_files_is_told(state: str, words: str) -> None:
    receipt = {"count": 1, "totalBytes": 3, "relDir": "x", "state": state}
    assert attachments_summary(receipt) == f"1 file(s), 3 bytes, {words} of the workspace"


def test_nothing_is_asked_for_that_was_not_given(spawnlog: Command, accepting: RecordedApi) -> None:
    assert spawnlog("spawn", "Read").exit_code == 0
    assert not {"attachments", "attachAs", "lightContext"} & set(accepting.asked[0].body)


def test_a_file_that_cannot_be_read_is_told_and_nothing_is_asked(
    spawnlog: Command, api: RecordedApi, tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "lost\x1b[2J").symlink_to("missing")
    for name, why in (
        ("missing", "No such file or directory"),
        ("lost\x1b[2J", "No such file or directory"),
        ("folder", "Is a directory"),
        ("folder/..", "Is a directory"),
    ):
        result = spawnlog("spawn", "Read", "--attach", str(tmp_path / name))
        assert result.exit_code == 2
        assert result.stderr.startswith("error: cannot attach ")
        assert why in result.stderr
        assert "\x1b" not in result.stderr
    assert api.asked == []


def test_a_name_that_is_not_utf_8_is_told(
    spawnlog: Command, api: RecordedApi, tmp_path: Path
) -> None:
    path = os.fsencode(tmp_path) + b"/\xff.txt"
    with open(path, "wb") as file:
        file.write(b"x")
    result = spawnlog("spawn", "Read", "--attach", os.fsdecode(path))
    assert result.exit_code == 2
    assert "its name is not UTF-8; attach a copy with another" in result.stderr
    assert api.asked == []


def test_files_are_counted_together_and_read_no_further_than_that(
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


def test_files_that_no_request_can_hold_are_told_before_they_are_sent(
    spawnlog: Command, accepting: RecordedApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spawn_arguments, "REQUEST_BYTES_MAX", 200)
    contents = {"plain": b"x" * 100, "control": b"\x01" * 40, "binary": b"\xff" * 130}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    assert spawnlog("spawn", "x", "--attach", f"{tmp_path}/plain").exit_code == 0
    for name in ("control", "binary"):
        over = spawnlog("spawn", "x", "--attach", f"{tmp_path}/{name}")
        assert over.exit_code == 2
        assert "cannot attach so much: as a request holds them the files are " in over.stderr
        assert "bytes, and a server takes 200; attach less, or one archive" in over.stderr
    assert len(accepting.asked) == 1


def test_a_pipe_is_read_to_its_end(
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


def test_a_refusal_of_the_files_exits_with_3(
    spawnlog: Command, api: RecordedApi, tmp_path: Path
) -> None:
    (tmp_path / "a").write_text("x")
    detail = "attachments_file_count_exceeded (maxFiles=0)"
    refusal = problem(422, code="spawn_error", detail=detail, rule="attachments", runId=RUN)
    api.on("POST", "/v1/spawns", refusal)
    result = spawnlog("spawn", "Read", "--attach", str(tmp_path / "a"))
    assert result.exit_code == 3
    assert result.stderr.startswith(f"refused: {detail}")
    assert "rule: attachments" in result.stderr
