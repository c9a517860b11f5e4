"""Where the server is, and which token goes to it."""

import json
from pathlib import Path

import pytest

from spawnlog.core.errors import InvalidSetting
from spawnlog.core.location import (
    DEFAULT_URL,
    ServerAddress,
    locate_server,
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The data directory of a running server."""
    (tmp_path / "admin-token").write_text("from-the-file\n")
    (tmp_path / "server.json").write_text(json.dumps({"url": "http://127.0.0.1:4711"}))
    return tmp_path


def test_without_anything_it_is_the_default_port_of_this_machine(tmp_path: Path) -> None:
    assert locate_server(None, tmp_path, {}) == ServerAddress(DEFAULT_URL, None)


def test_the_running_server_of_the_data_directory_is_found(home: Path) -> None:
    assert locate_server(None, home, {}) == ServerAddress("http://127.0.0.1:4711", "from-the-file")


def test_the_data_directory_may_come_from_its_variable(home: Path) -> None:
    found = locate_server(None, None, {"SPAWNLOG_DATA_DIR": str(home)})
    assert found == ServerAddress("http://127.0.0.1:4711", "from-the-file")


def test_a_flag_beats_a_variable_and_a_variable_beats_the_file(home: Path) -> None:
    variables = {"SPAWNLOG_URL": "http://localhost:2", "SPAWNLOG_TOKEN": "from-variable"}
    assert locate_server("http://localhost:1/", home, variables) == ServerAddress(
        "http://localhost:1", "from-variable"
    )
    assert locate_server(None, home, variables) == ServerAddress(
        "http://localhost:2", "from-variable"
    )


def test_the_token_of_the_file_goes_to_no_other_machine(home: Path) -> None:
    assert locate_server("https://example.org", home, {}).token is None
    assert locate_server("https://example.org", home, {"SPAWNLOG_TOKEN": "mine"}).token == "mine"


def test_the_token_of_the_file_goes_to_the_recorded_server_wherever_it_listens(home: Path) -> None:
    (home / "server.json").write_text(json.dumps({"url": "http://192.0.2.7:8700"}))
    assert locate_server(None, home, {}).token == "from-the-file"
    assert locate_server("http://192.0.2.8:8700", home, {}).token is None


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:8700",
        "ftp://127.0.0.1",
        "http://",
        "http://me:secret@127.0.0.1",
        "http://127.0.0.1/?token=x",
        "http://127.0.0.1/v1",
        "http://127.0.0.1#x",
        "http://127.0.0.1:99999",
        "http://[::1",
        "http://a b",
    ],
)
def test_what_is_no_address_of_a_server_is_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="not an address") as failure:
        locate_server(url, tmp_path, {})
    assert "secret" not in failure.value.message


@pytest.mark.parametrize("note", ["{", "[]", '{"address": "x"}', '{"url": 7}'])
def test_a_broken_note_of_the_server_is_named(note: str, tmp_path: Path) -> None:
    (tmp_path / "server.json").write_text(note)
    with pytest.raises(InvalidSetting, match=r"server\.json|not an address"):
        locate_server(None, tmp_path, {})


@pytest.mark.parametrize("token", ["two words", "naïve", "line\x07"])
def test_what_is_no_token_is_not_sent_and_not_told(token: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="one word") as failure:
        locate_server(None, tmp_path, {"SPAWNLOG_TOKEN": token})
    assert token not in failure.value.message


def test_a_token_is_not_in_what_is_printed_of_a_server() -> None:
    assert "secret" not in repr(ServerAddress("http://127.0.0.1", "secret"))
