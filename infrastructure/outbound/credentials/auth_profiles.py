"""The `auth-profiles.json` of an agent's folder. Of what it says only ids are ever told."""

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from domain.plan.credentials import NO_PROFILES, ProfileFile
from domain.values.text import single_line
from infrastructure.outbound.configuration.json5 import Document, Json5Error, read_json5
from infrastructure.outbound.credentials.profile_reading import (
    ID_CHARACTERS_MAX,
    InvalidProfiles,
    parse_profiles,
)

FILE_NAME = "auth-profiles.json"
FILE_BYTES_MAX = 512 * 1024

_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY
_OTHERS = 0o077

FileIdentity = tuple[int, int, int, int, int]


class ProfilesUnreadable(Exception):
    """The file is there and cannot be used; the text says why, as in `auth-profiles.json is …`."""


@dataclass(frozen=True, slots=True)
class LoadedProfiles:
    """What a file says. `values` are those that stand in it, by id of the profile: they are for
    use at once and are kept nowhere. `mode` are the permissions of the file."""

    file: ProfileFile
    mode: int = 0o600
    identity: FileIdentity | None = None
    values: Mapping[str, str] = field(default_factory=dict, repr=False)


def read_profiles(folder: Path) -> LoadedProfiles:
    """The file of this folder; none is without profiles. It is read only when it is a regular file
    of the folder: a link in its place is followed as long as it stays in there.

    Raises `ProfilesUnreadable`. Blocks.
    """
    try:
        return _read(folder)
    except OSError as failure:
        raise ProfilesUnreadable(f"cannot be read: {failure.strerror}") from None
    except ValueError:
        raise ProfilesUnreadable("cannot be read: its path is no valid one") from None


def identity_of(folder: Path) -> FileIdentity | None:
    """By this a file is known again that has not changed; None when it cannot be looked at."""
    try:
        return _identity(os.stat(folder / FILE_NAME))
    except (OSError, ValueError):
        return None


def profile_warnings(read: LoadedProfiles) -> Iterator[str]:
    """What is doubtful about a file that can be read, in words that follow its name."""
    if read.mode & _OTHERS:
        mode = f"{read.mode:04o}"
        yield f"may be read or written by other users (mode {mode}); chmod 600 closes it to them"
    for skipped in read.file.skipped:
        yield f"{_describe_profile(skipped.id)} is not used: {skipped.why}"
    for profile in read.file.profiles:
        if profile.unusable is not None:
            yield f"{_describe_profile(profile.id)} cannot be used: it {profile.unusable}"


def _describe_profile(profile_id: str | None) -> str:
    if profile_id is None:
        return "has a profile that"
    return f'has profile "{single_line(profile_id, characters_max=ID_CHARACTERS_MAX)}", which'


def _read(folder: Path) -> LoadedProfiles:
    path = folder / FILE_NAME
    try:
        os.lstat(path)
    except FileNotFoundError:
        return LoadedProfiles(NO_PROFILES)
    inside = os.path.realpath(folder, strict=True)
    target = os.path.realpath(path, strict=True)
    if not Path(target).is_relative_to(inside):
        raise ProfilesUnreadable("is a link that leads out of its folder; put the file there")
    # Asked before opening too: opening a device may do something.
    _must_be_regular(os.stat(target))
    descriptor = os.open(target, _FLAGS)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        _must_be_regular(found)
        content = file.read(FILE_BYTES_MAX + 1)
    document = _document(content)
    try:
        profiles, values = parse_profiles(document.values)
    except InvalidProfiles as failure:
        raise ProfilesUnreadable(str(failure)) from None
    return LoadedProfiles(profiles, stat.S_IMODE(found.st_mode), _identity(found), values)


def _must_be_regular(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise ProfilesUnreadable("is not a regular file")


def _document(content: bytes) -> Document:
    if len(content) > FILE_BYTES_MAX:
        raise ProfilesUnreadable(f"is larger than {FILE_BYTES_MAX // 1024} KiB")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as failure:
        line = content.count(b"\n", 0, failure.start) + 1
        raise ProfilesUnreadable(f"is not UTF-8 at line {line}") from None
    try:
        document = read_json5(text)
    except Json5Error as failure:
        # Its message may quote what stands there.
        line, column = Document(None, {}, (), text).line_and_column(failure.offset)
        raise ProfilesUnreadable(f"is not JSON5 at line {line}, column {column}") from None
    for _, offset in document.repeated:
        line, column = document.line_and_column(offset)
        message = f"has a key a second time at line {line}, column {column}"
        raise ProfilesUnreadable(message)
    return document


def _identity(found: os.stat_result) -> FileIdentity:
    # The time of the last change of any kind: it tells of new permissions too.
    times = found.st_mtime_ns, found.st_ctime_ns
    return (found.st_dev, found.st_ino, found.st_size, *times)
