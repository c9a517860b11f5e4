"""Read the `auth-profiles.json` of an agent's folder. Messages show only ids of profiles."""

import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from domain.configuration.runtimes import RESERVED_VARIABLES
from domain.configuration.secrets import variable_named_by, variables_in, with_variables
from domain.plan.credentials import (
    NO_PROFILES,
    AuthProfile,
    ProfileFile,
    SkippedProfile,
    decides_program,
    default_variable,
)
from domain.values.text import single_line
from infrastructure.outbound.configuration.json5 import Document, Json5Error, read_json5
from infrastructure.outbound.credentials.values import value_fault

# Parsing of an `auth-profiles.json`. Keys of other programs are ignored.


PROFILES_MAX = 200
ID_CHARACTERS_MAX = 128
PATH_CHARACTERS_MAX = 4096
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_FIELDS = {"api_key": ("keyRef", "key"), "token": ("tokenRef", "token")}
_RESERVED_PREFIX = "SPAWNLOG_"
_OAUTH = (
    "is of type oauth, but spawnlog does not refresh its token; add a profile of type api_key or"
    " token"
)
_UNKNOWN_REFERENCE = (
    "has an unknown form of reference to its value; write ${NAME} for a variable or"
    ' {"file": "path"} for a file'
)
_DECIDES_PROGRAM = (
    "names {name} as its env, which decides which program a runtime starts; name another"
    " variable, or set this one in the env of the runtime"
)


class InvalidProfilesError(Exception):
    """The file as a whole is invalid. The text follows the name of the file."""


def parse_profiles(values: Any) -> tuple[ProfileFile, dict[str, str]]:
    """Parse the values of an `auth-profiles.json`.

    Returns:
        The profiles, and the texts in the file by profile id.

    Raises:
        InvalidProfilesError: The structure is wrong, or there are too many profiles.
    """
    listed = values.get("profiles") if isinstance(values, dict) else None
    if not isinstance(listed, dict):
        raise InvalidProfilesError('must be an object with "profiles", an object of them by id')
    if len(listed) > PROFILES_MAX:
        raise InvalidProfilesError(f"has more than {PROFILES_MAX} profiles")
    profiles: list[AuthProfile] = []
    skipped: list[SkippedProfile] = []
    standing: dict[str, str] = {}
    for profile_id, entry in listed.items():
        if not _is_id(profile_id):
            why = f"its id is not printable text of at most {ID_CHARACTERS_MAX} characters"
            skipped.append(SkippedProfile(None, why))
            continue
        read = _profile(profile_id, entry)
        if isinstance(read, str):
            skipped.append(SkippedProfile(profile_id, read))
            continue
        profiles.append(read)
        if read.stands_here:
            standing[profile_id] = str(_value(entry))
    return ProfileFile(tuple(profiles), tuple(skipped)), standing


def _is_id(text: str) -> bool:
    return bool(text.strip()) and text.isprintable() and len(text) <= ID_CHARACTERS_MAX


def _profile(profile_id: str, entry: Any) -> AuthProfile | str:
    """Return the profile, or why it is invalid."""
    if not isinstance(entry, dict):
        return "it is not an object"
    kind = entry.get("type")
    if kind == "oauth":
        return f"it {_OAUTH}"
    if not isinstance(kind, str) or kind not in _FIELDS:
        return 'its type must be "api_key" or "token"'
    name = _env_name(entry)
    if name is None:
        return "neither its provider nor its env names an environment variable; set env"
    if name.startswith(_RESERVED_PREFIX) or name in RESERVED_VARIABLES:
        return f"its env begins with {_RESERVED_PREFIX}, which is set by spawnlog for each run"
    value = _value(entry)
    if value is None or value == "":
        return f"it has no {_FIELDS[kind][-1]}"
    expires = entry.get("expires")
    is_time = isinstance(expires, int | float) and not isinstance(expires, bool) and expires > 0
    profile = AuthProfile(id=profile_id, env_name=name, expires_at_ms=expires if is_time else None)
    if decides_program(name):
        return replace(profile, unusable=_DECIDES_PROGRAM.format(name=name))
    return _with_value(profile, value)


def _env_name(entry: Mapping[str, Any]) -> str | None:
    provider, env = entry.get("provider"), entry.get("env")
    if env is None and isinstance(provider, str) and provider.strip():
        env = default_variable(provider)
    return env if isinstance(env, str) and _VARIABLE_NAME.fullmatch(env) else None


def _value(entry: Mapping[str, Any]) -> Any:
    """Return the value of an entry. A reference takes precedence over a text."""
    present = (entry.get(name) for name in _FIELDS[entry["type"]])
    return next((value for value in present if value is not None), None)


def _with_value(profile: AuthProfile, value: Any) -> AuthProfile:
    if isinstance(value, str):
        names = tuple(dict.fromkeys(variables_in(value)))
        standing = with_variables(value, dict.fromkeys(names, ""))
        return replace(
            profile,
            variables=names,
            # Text around a reference is in the file, too.
            stands_here=variable_named_by(value) is None,
            unusable=value_fault(standing, is_whole=not names),
        )
    if isinstance(value, dict):
        if set(value) == {"file"} and _is_path(value["file"]):
            return replace(profile, file=value["file"])
        if value.get("source") == "env" and _is_variable(value.get("id")):
            return replace(profile, variables=(value["id"],))
    return replace(profile, unusable=_UNKNOWN_REFERENCE)


def _is_path(value: object) -> bool:
    if not isinstance(value, str) or not value.strip():
        return False
    return value.isprintable() and len(value) <= PATH_CHARACTERS_MAX


def _is_variable(value: object) -> bool:
    return isinstance(value, str) and _VARIABLE_NAME.fullmatch(value) is not None


FILE_NAME = "auth-profiles.json"
FILE_BYTES_MAX = 512 * 1024
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY
_OTHERS = 0o077
FileIdentity = tuple[int, int, int, int, int]


class UnreadableProfilesError(Exception):
    """The file exists and cannot be used. The text continues "auth-profiles.json"."""


@dataclass(frozen=True, slots=True)
class LoadedProfiles:
    """Content of a file.

    Attributes:
        file: The profiles.
        mode: Permission bits of the file.
        identity: Identity for change detection; None if there is no file.
        values: Texts in the file by profile id. Use them at once and do not store them.
    """

    file: ProfileFile
    mode: int = 0o600
    identity: FileIdentity | None = None
    values: Mapping[str, str] = field(default_factory=dict, repr=False)


def read_profiles(folder: Path) -> LoadedProfiles:
    """Read the file of a folder; without a file there are no profiles. Blocks.

    The file must be a regular file inside the folder. A link is followed if it stays in the folder.

    Raises:
        UnreadableProfilesError: The file exists and cannot be used.
    """
    try:
        return _read(folder)
    except OSError as failure:
        raise UnreadableProfilesError(f"cannot be read: {failure.strerror}") from None
    except ValueError:
        raise UnreadableProfilesError("cannot be read: its path is invalid") from None


def identity_of(folder: Path) -> FileIdentity | None:
    """Return the identity of a folder's file, which changes with the file; None if it is
    inaccessible."""
    try:
        return _identity(os.stat(folder / FILE_NAME))
    except (OSError, ValueError):
        return None


def is_there(folder: Path) -> bool:
    """Return True if the folder has such a file, even a dangling link."""
    try:
        os.lstat(folder / FILE_NAME)
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        pass
    return True


def profile_warnings(read: LoadedProfiles) -> Iterator[str]:
    """Yield warnings about a readable file, in words that follow its name."""
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
        raise UnreadableProfilesError("is a link that leads out of its folder; put the file there")
    # Check before opening too: opening a device may have side effects.
    _require_regular(os.stat(target))
    descriptor = os.open(target, _FLAGS)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        _require_regular(found)
        content = file.read(FILE_BYTES_MAX + 1)
    document = _document(content)
    try:
        profiles, values = parse_profiles(document.values)
    except InvalidProfilesError as failure:
        raise UnreadableProfilesError(str(failure)) from None
    return LoadedProfiles(profiles, stat.S_IMODE(found.st_mode), _identity(found), values)


def _require_regular(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise UnreadableProfilesError("is not a regular file")


def _document(content: bytes) -> Document:
    if len(content) > FILE_BYTES_MAX:
        raise UnreadableProfilesError(f"is larger than {FILE_BYTES_MAX // 1024} KiB")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as failure:
        line = content.count(b"\n", 0, failure.start) + 1
        raise UnreadableProfilesError(f"is not UTF-8 at line {line}") from None
    try:
        document = read_json5(text)
    except Json5Error as failure:
        # The message may quote the file.
        line, column = Document(None, {}, (), text).line_and_column(failure.offset)
        raise UnreadableProfilesError(f"is not JSON5 at line {line}, column {column}") from None
    for _, offset in document.repeated:
        line, column = document.line_and_column(offset)
        message = f"has a duplicate key at line {line}, column {column}"
        raise UnreadableProfilesError(message)
    return document


def _identity(found: os.stat_result) -> FileIdentity:
    # ctime changes with the permissions, too.
    times = found.st_mtime_ns, found.st_ctime_ns
    return (found.st_dev, found.st_ino, found.st_size, *times)
