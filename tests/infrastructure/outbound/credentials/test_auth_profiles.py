"""Files of credentials as they are read."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from domain.plan.credentials import NO_PROFILES, AuthProfile
from infrastructure.outbound.credentials.auth_profiles import (
    FILE_BYTES_MAX,
    FILE_NAME,
    UnreadableProfilesError,
    parse_profiles,
    profile_warnings,
    read_profiles,
)
from tests.support.builders.folders import api_key, write_profiles
from tests.support.servers.data_directories import new_place
from tests.support.servers.embedded_servers import NOBODY
from tests.support.servers.preloaded import ROOT

CANARY = "canary-in-a-file-0123456789"


def why(folder: Path) -> str:
    with pytest.raises(UnreadableProfilesError) as caught:
        read_profiles(folder)
    text = str(caught.value)
    assert CANARY not in text
    return text


def test_missing_file_has_no_profiles(tmp_path: Path) -> None:
    assert read_profiles(tmp_path).file == NO_PROFILES
    assert read_profiles(tmp_path / "not" / "there").file == NO_PROFILES


def test_each_form_of_a_value_is_read(tmp_path: Path) -> None:
    write_profiles(
        tmp_path,
        {
            "a:variable": api_key("a", "${A_KEY}"),
            "b:file": api_key("b", {"file": "b.key"}),
            "c:source": api_key("c", None, keyRef={"source": "env", "provider": "p", "id": "C"}),
            "d:token": {"type": "token", "provider": "d", "token": CANARY, "expires": 5},
            "e:text": api_key("e", f"{CANARY} ${{E_KEY}}", env="MY_TOKEN", email="x@y"),
            "f:exec": api_key("f", {"source": "exec", "id": "x"}),
        },
    )
    read = read_profiles(tmp_path)
    assert read.file.skipped == ()
    *rest, unusable = read.file.profiles
    assert rest == [
        AuthProfile(id="a:variable", env_name="A_API_KEY", variables=("A_KEY",)),
        AuthProfile(id="b:file", env_name="B_API_KEY", file="b.key"),
        AuthProfile(id="c:source", env_name="C_API_KEY", variables=("C",)),
        AuthProfile(id="d:token", env_name="D_API_KEY", stands_here=True, expires_at_ms=5),
        AuthProfile(id="e:text", env_name="MY_TOKEN", variables=("E_KEY",), stands_here=True),
    ]
    assert unusable.unusable is not None
    assert read.values == {"d:token": CANARY, "e:text": f"{CANARY} ${{E_KEY}}"}
    assert CANARY not in repr(read)


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"type": "oauth", "provider": "a", "access": CANARY}, "is of type oauth"),
        ({"type": "cookie", "provider": "a", "key": CANARY}, "its type must be"),
        ({"provider": "a", "key": CANARY}, "its type must be"),
        (CANARY, "it is not an object"),
        ({"type": "api_key", "provider": "a"}, "it has no key"),
        ({"type": "token", "provider": "a", "token": ""}, "it has no token"),
        ({"type": "api_key", "key": CANARY}, "names an environment variable"),
        ({"type": "api_key", "provider": "01", "key": CANARY}, "names an environment variable"),
        (api_key("a", CANARY, env="A=B"), "names an environment variable"),
        (api_key("a", CANARY, env="SPAWNLOG_TOKEN"), "set by spawnlog for each run"),
        (api_key("spawnlog", CANARY), "set by spawnlog for each run"),
    ],
)
def test_other_profile_is_skipped_and_told(tmp_path: Path, entry: object, says: str) -> None:
    write_profiles(tmp_path, {"a:b": entry, "c:d": api_key("c", "${C}")})
    read = read_profiles(tmp_path)
    assert [profile.id for profile in read.file.profiles] == ["c:d"]
    (complaint,) = profile_warnings(read)
    assert complaint.startswith('has profile "a:b", which is not used: ')
    assert says in complaint
    assert CANARY not in complaint


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (" \n", "has a value that is blank or contains NUL"),
        (CANARY * 1300, "has a value of more than 32768 bytes or 200 lines"),
        (CANARY * 1300 + "${A}", "has a value of more than 32768 bytes or 200 lines"),
        ("\n" + "line\n" * 200, "has a value of more than 32768 bytes or 200 lines"),
    ],
    ids=["blank", "long", "long and a reference", "lines"],
)
def test_text_for_no_program_is_unusable(tmp_path: Path, value: str, says: str) -> None:
    write_profiles(tmp_path, {"a:b": api_key("a", value)})
    read = read_profiles(tmp_path)
    (profile,) = read.file.profiles
    assert profile.unusable == says
    assert list(profile_warnings(read)) == [f'has profile "a:b", which cannot be used: it {says}']


@pytest.mark.parametrize("value", ["a\0", "${A}\0", "\ud800"])
def test_nul_and_half_characters_are_unusable(value: str) -> None:
    read, _ = parse_profiles({"profiles": {"a": api_key("a", value)}})
    assert str(read.profiles[0].unusable).startswith("has a value that is")


def test_text_at_the_limits_is_taken(tmp_path: Path) -> None:
    values = "x" * 32_768, "line\n" * 200, "${A}", " ${A} "
    write_profiles(tmp_path, {str(at): api_key("a", value) for at, value in enumerate(values)})
    assert [profile.unusable for profile in read_profiles(tmp_path).file.profiles] == [None] * 4


@pytest.mark.parametrize(
    "name", ["PATH", "HOME", "LD_PRELOAD", "LD_ANYTHING", "DYLD_INSERT_LIBRARIES", "PYTHONPATH"]
)
def test_profile_does_not_choose_the_program(tmp_path: Path, name: str) -> None:
    write_profiles(tmp_path, {"a:b": api_key("a", CANARY, env=name)})
    (complaint,) = profile_warnings(read_profiles(tmp_path))
    assert complaint == (
        f'has profile "a:b", which cannot be used: it names {name} as its env, which decides which'
        " program a runtime starts; name another variable, or set this one in the env of the"
        " runtime"
    )


@pytest.mark.parametrize("profile_id", ["", " ", "a\nb", "x" * 129])
def test_unprintable_id_is_not_shown(tmp_path: Path, profile_id: str) -> None:
    write_profiles(tmp_path, {profile_id: api_key("a", "${A}")})
    (complaint,) = profile_warnings(read_profiles(tmp_path))
    assert complaint.startswith("has a profile that is not used: its id is not printable text")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_file_open_to_others_is_told(tmp_path: Path, mode: int) -> None:
    write_profiles(tmp_path, {"a": api_key("a", "${A}")}, mode)
    (complaint,) = profile_warnings(read_profiles(tmp_path))
    assert complaint == (
        f"may be read or written by other users (mode {mode:04o}); chmod 600 closes it to them"
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f'{{"profiles": {{\n  "a": {CANARY}', "is not JSON5 at line 2, column 8"),
        ("{profiles: {},\n profiles: {}}", "has a duplicate key at line 2, column 2"),
        ("[]", 'must be an object with "profiles"'),
        (b"{\n\n\xff}", "is not UTF-8 at line 3"),
        (f'{{"profiles": "{CANARY}"}}', 'must be an object with "profiles"'),
        ("{" + " " * FILE_BYTES_MAX, "is larger than 512 KiB"),
        (
            "{profiles: {" + ",".join(f"p{n}: 1" for n in range(201)) + "}}",
            "has more than 200 profiles",
        ),
    ],
)
def test_unreadable_file_says_where_and_quotes_nothing(
    tmp_path: Path, text: str | bytes, says: str
) -> None:
    (tmp_path / FILE_NAME).write_bytes(text if isinstance(text, bytes) else text.encode())
    assert why(tmp_path).startswith(says)


def test_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    elsewhere = write_profiles(tmp_path / "elsewhere", {"a": api_key("a", CANARY)})
    folder = tmp_path / "agent"
    folder.mkdir()
    (folder / FILE_NAME).symlink_to(elsewhere)
    assert why(folder) == "is a link that leads out of its folder; put the file there"
    (folder / FILE_NAME).unlink()
    (folder / FILE_NAME).symlink_to("not-there")
    assert why(folder) == "cannot be read: No such file or directory"


def test_link_inside_the_folder_is_followed(tmp_path: Path) -> None:
    inner = write_profiles(tmp_path / "agent" / "..data", {"a": api_key("a", "${A}")})
    (tmp_path / "agent" / FILE_NAME).symlink_to(inner.relative_to(tmp_path / "agent"))
    (tmp_path / "link").symlink_to("agent")
    assert [profile.id for profile in read_profiles(tmp_path / "link").file.profiles] == ["a"]


def test_other_than_file_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / FILE_NAME)
    assert why(tmp_path) == "is not a regular file"
    (tmp_path / "folder" / FILE_NAME).mkdir(parents=True)
    assert why(tmp_path / "folder") == "is not a regular file"
    (tmp_path / "file").touch()
    assert why(tmp_path / "file") == "cannot be read: Not a directory"
    assert why(Path("a\0b")) == "cannot be read: its path is invalid"


_AS_USER = """
import os, sys
from pathlib import Path
from infrastructure.outbound.credentials.auth_profiles import UnreadableProfilesError, read_profiles
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(int(sys.argv[2]))
    os.setuid(int(sys.argv[2]))
try:
    print([one.id for one in read_profiles(Path(sys.argv[1])).file.profiles])
except UnreadableProfilesError as failure:
    print(failure)
"""


@pytest.mark.long
def test_ordinary_user_is_told_of_closed_file() -> None:
    with new_place() as place:
        place.chmod(0o755)
        mine = write_profiles(place / "mine", {"a": api_key("a", "${A}")}, 0o644)
        closed = write_profiles(place / "closed", {"a": api_key("a", CANARY)}, 0o000)
        for folder in (mine.parent, closed.parent):
            folder.chmod(0o755)

        def said(folder: Path) -> str:
            command = [sys.executable, "-c", _AS_USER, str(folder), str(NOBODY)]
            ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
            return ended.stdout.strip()

        assert said(mine.parent) == "['a']"
        assert said(closed.parent) == "cannot be read: Permission denied"
