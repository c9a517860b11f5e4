"""`spawnlog spawn --shared`: what is shared, from the command line and from files."""

from pathlib import Path

import pytest

from infrastructure.inbound.command_line.client import arguments as spawn_arguments
from tests.support.servers.command_line import Command
from tests.support.servers.recorded_api import RecordedApi, Reply

RUN = "11111111-0000-4000-8000-000000000001"


@pytest.fixture
def accepting(api: RecordedApi) -> RecordedApi:
    api.on("POST", "/v1/spawns", Reply({"status": "accepted", "runId": RUN}, status=201))
    return api


def test_what_is_shared_is_sent_as_it_is_with_its_scope(
    spawnlog: Command, accepting: RecordedApi
) -> None:
    options = ["--shared", '{"goal": "ü", "deep": {"a": [1, null]}}', "--shared-scope", "child"]
    assert spawnlog("spawn", "x", *options).exit_code == 0
    body = accepting.asked[0].body
    assert body["sharedContext"] == {"goal": "ü", "deep": {"a": [1, None]}}
    assert body["sharedContextScope"] == "child"


def test_objects_and_files_add_up_and_the_last_word_about_a_key_counts(
    spawnlog: Command, accepting: RecordedApi, tmp_path: Path
) -> None:
    file = tmp_path / "shared.json"
    file.write_bytes(b'\xef\xbb\xbf{"goal": "from a file", "more": 1}\n')
    options = ["--shared", '{"goal": "a", "first": true}', "--shared", f"@{file}"]
    assert spawnlog("spawn", "x", *options, "--shared", '{"more": 2}').exit_code == 0
    sent = accepting.asked[0].body["sharedContext"]
    assert list(sent.items()) == [("goal", "from a file"), ("first", True), ("more", 2)]


def test_nothing_is_shared_that_was_not_given(spawnlog: Command, accepting: RecordedApi) -> None:
    assert spawnlog("spawn", "x").exit_code == 0
    assert not {"sharedContext", "sharedContextScope"} & set(accepting.asked[0].body)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("goal=a", "error: --shared is not JSON"),
        (
            '{"a": {"b": 1, "b": 2}}',
            "error: --shared: the JSON has the key /a/b twice; give it once",
        ),
        ('{"a": NaN}', "error: --shared is not JSON"),
        ('{"a": 1e999}', "error: --shared is not JSON"),
        ("[" * 100_000, "error: --shared is not JSON"),
        ('["a"]', 'error: --shared is no JSON object, such as {"goal": "a web app"}'),
        ("", 'error: --shared is empty: it must be a JSON object, such as {"goal": "a web app"}'),
    ],
)
def test_what_is_no_object_is_told_and_nothing_is_asked(
    spawnlog: Command, api: RecordedApi, given: str, says: str
) -> None:
    result = spawnlog("spawn", "x", "--shared", given)
    assert (result.exit_code, result.stderr) == (2, f"{says}\n")
    assert api.asked == []


def test_a_file_that_cannot_be_shared_is_told_and_nothing_is_asked(
    spawnlog: Command, api: RecordedApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spawn_arguments, "FILE_BYTES_MAX", 10)
    (tmp_path / "folder").mkdir()
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "long").write_bytes(b" " * 9 + b"{}")
    (tmp_path / "list\x1b").write_text("[]")
    for name, says in (
        ("missing", "cannot be read: No such file or directory"),
        ("folder", "cannot be read: Is a directory"),
        ("binary", "is not UTF-8"),
        ("long", "has more than 10 bytes"),
        ("list\x1b", "is no JSON object"),
    ):
        result = spawnlog("spawn", "x", "--shared", f"@{tmp_path / name}")
        assert result.exit_code == 2
        assert says in result.stderr
        assert "\x1b" not in result.stderr
    assert spawnlog("spawn", "x", "--shared", "@").exit_code == 2
    assert api.asked == []
