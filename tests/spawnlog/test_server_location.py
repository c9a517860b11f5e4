"""Location of the server, and the token for it."""

import json
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from infrastructure.outbound.identity.data_directory import DataDirectory
from spawnlog import Client, ServerUnreachableError
from spawnlog.core.errors import InvalidSettingError
from spawnlog.core.location import DEFAULT_URL, ServerAddress, locate_server

LOG = uuid4()


@pytest.fixture
def directory(tmp_path: Path) -> DataDirectory:
    (tmp_path / "admin-token").write_text("from-the-file\n")
    return DataDirectory.open(tmp_path)


@pytest.fixture
def home(directory: DataDirectory) -> Iterator[Path]:
    entry = directory.enter_server("http://127.0.0.1:4711", LOG)
    yield directory.path
    entry.remove()


def leave_entry(directory: Path, url: str, pid: int = 999) -> Path:
    """Write the entry of a killed server, whose lock is free."""
    path = directory / "servers" / f"1-{pid}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"url": url, "pid": pid, "logId": str(LOG)}))
    return path


HERE = "http://127.0.0.1:4711"
VARIABLES = {"SPAWNLOG_URL": "http://localhost:2", "SPAWNLOG_TOKEN": "from-variable"}
MINE = {"SPAWNLOG_TOKEN": "mine"}


@pytest.mark.parametrize(
    ("url", "variables", "found"),
    [
        (None, {}, (HERE, "from-the-file")),
        ("http://localhost:1/", VARIABLES, ("http://localhost:1", "from-variable")),
        (None, VARIABLES, ("http://localhost:2", "from-variable")),
        # The token of the file goes to no other machine.
        ("https://example.org", {}, ("https://example.org", None)),
        ("https://example.org", MINE, ("https://example.org", "mine")),
    ],
)
def test_flag_beats_variable_and_variable_beats_file(
    home: Path, url: str | None, variables: dict[str, str], found: tuple[str, str | None]
) -> None:
    assert locate_server(url, home, variables) == ServerAddress(*found)
    assert locate_server(url, str(home), variables) == ServerAddress(*found)
    variables = {**variables, "SPAWNLOG_DATA_DIR": str(home)}
    assert locate_server(url, None, variables) == ServerAddress(*found)


def test_token_of_the_file_goes_to_every_live_server(directory: DataDirectory) -> None:
    first = directory.enter_server("http://192.0.2.7:8700", LOG)
    second = directory.enter_server("http://192.0.2.9:8700", LOG)
    for url in ("http://192.0.2.7:8700", "http://192.0.2.9:8700"):
        assert locate_server(url, directory.path, {}).token == "from-the-file"
    assert locate_server("http://192.0.2.8:8700", directory.path, {}).token is None
    first.remove()
    assert locate_server("http://192.0.2.7:8700", directory.path, {}).token is None
    second.remove()


def test_each_server_has_its_entry_and_removes_its_own(directory: DataDirectory) -> None:
    first = directory.enter_server("http://127.0.0.1:1", LOG)
    second = directory.enter_server("http://127.0.0.1:2", LOG)
    assert locate_server(None, directory.path, {}).url == "http://127.0.0.1:2"
    second.remove()
    assert locate_server(None, directory.path, {}).url == "http://127.0.0.1:1"
    first.remove()
    first.remove()
    assert locate_server(None, directory.path, {}).url == DEFAULT_URL
    assert list((directory.path / "servers").iterdir()) == []


def test_entry_of_a_killed_server_is_passed_over(home: Path) -> None:
    later = leave_entry(home, "http://127.0.0.1:4712")
    later.rename(later.with_name("9999999999999999999-999.json"))
    assert locate_server(None, home, {}).url == "http://127.0.0.1:4711"
    assert locate_server("http://127.0.0.1:4712", home, {}).url == "http://127.0.0.1:4712"


def test_server_removes_entries_of_killed_servers(directory: DataDirectory) -> None:
    left = leave_entry(directory.path, "http://127.0.0.1:4712")
    living = directory.enter_server("http://127.0.0.1:1", LOG)
    directory.enter_server("http://127.0.0.1:2", LOG).remove()
    assert not left.exists()
    assert [entry.url for entry in directory.servers_of(LOG)] == ["http://127.0.0.1:1"]
    living.remove()


def test_server_of_another_log_is_no_neighbor(directory: DataDirectory) -> None:
    second_entry = directory.enter_server("http://127.0.0.1:1", uuid4())
    assert directory.servers_of(LOG) == []
    second_entry.remove()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"url": "x"}', b"\xff"])
def test_file_that_is_no_entry_is_passed_over(content: bytes, home: Path) -> None:
    (home / "servers" / "9-9.json").write_bytes(content)
    (home / "servers" / "8-8.json").mkdir()
    assert locate_server(None, home, {}).url == "http://127.0.0.1:4711"


def test_entry_with_an_invalid_address_is_passed_over(directory: DataDirectory) -> None:
    good = directory.enter_server("http://127.0.0.1:4711", LOG)
    bad = directory.enter_server("nonsense", LOG)
    assert locate_server(None, directory.path, {}).url == "http://127.0.0.1:4711"
    assert locate_server("http://127.0.0.1:1", directory.path, {}).url == "http://127.0.0.1:1"
    bad.remove()
    good.remove()


def test_unreachable_server_error_names_its_entry(home: Path) -> None:
    with Client(data_dir=home) as client, pytest.raises(ServerUnreachableError) as lost:
        client.get_health()
    text = str(lost.value)
    assert "no server answers at http://127.0.0.1:4711" in text
    assert f"the address in {home / 'servers'}" in text


def test_address_without_a_server_is_the_default_and_says_why(tmp_path: Path) -> None:
    nothing = f"the default address; no server runs on the data directory {tmp_path}"
    address = locate_server(None, tmp_path, {})
    assert (address, address.origin) == (ServerAddress(DEFAULT_URL, None), nothing)
    leave_entry(tmp_path, "http://127.0.0.1:4712", pid=4242)
    address = locate_server(None, tmp_path, {})
    assert address.url == DEFAULT_URL
    assert address.origin == (
        f"the default address; the servers of the data directory {tmp_path} were killed:"
        " http://127.0.0.1:4712 (process 4242)"
    )


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
def test_unusable_address_is_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidSettingError, match="not an address") as failure:
        locate_server(url, tmp_path, {})
    assert "secret" not in failure.value.message


@pytest.mark.parametrize("token", ["two words", "naïve", "line\x07"])
def test_unusable_token_is_not_shown(token: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidSettingError, match="one word") as failure:
        locate_server(None, tmp_path, {"SPAWNLOG_TOKEN": token})
    assert token not in failure.value.message
    assert "secret" not in repr(ServerAddress("http://127.0.0.1", "secret"))


def test_data_directory_of_unknown_user_is_refused() -> None:
    with pytest.raises(InvalidSettingError, match="~no-such-user/x names an unknown user"):
        locate_server(None, "~no-such-user/x", {})
    with pytest.raises(InvalidSettingError, match="~no-such-user/x names an unknown user"):
        locate_server(None, None, {"SPAWNLOG_DATA_DIR": "~no-such-user/x"})
