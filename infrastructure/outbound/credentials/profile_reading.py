"""From the values of an `auth-profiles.json` to profiles. Pure.

Keys of other programs beside those that are read here are left alone.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from domain.configuration.runtimes import RESERVED_VARIABLES
from domain.configuration.secrets import variable_named_by, variables_in, with_variables
from domain.plan.credentials import (
    AuthProfile,
    ProfileFile,
    SkippedProfile,
    decides_program,
    default_variable,
)
from infrastructure.outbound.credentials.value_limits import value_fault

PROFILES_MAX = 200
ID_CHARACTERS_MAX = 128
PATH_CHARACTERS_MAX = 4096

_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_FIELDS = {"api_key": ("keyRef", "key"), "token": ("tokenRef", "token")}
_RESERVED_PREFIX = "SPAWNLOG_"
_OAUTH = (
    "is of type oauth, and nothing refreshes its token here; add a profile of type api_key or token"
)
_UNKNOWN_REFERENCE = (
    "refers to its value in a way that is not known here; write ${NAME} for a variable or"
    ' {"file": "path"} for a file'
)
_DECIDES_PROGRAM = (
    "names {name} as its env, which decides what the program of a runtime is; name another"
    " variable, or set this one in the env of the runtime"
)


class InvalidProfiles(Exception):
    """The whole of it is not what it should be; the text follows the name of the file."""


def parse_profiles(values: Any) -> tuple[ProfileFile, dict[str, str]]:
    """The profiles, and the values that stand in them by id. Raises `InvalidProfiles`."""
    listed = values.get("profiles") if isinstance(values, dict) else None
    if not isinstance(listed, dict):
        raise InvalidProfiles('must be an object with "profiles", an object of them by id')
    if len(listed) > PROFILES_MAX:
        raise InvalidProfiles(f"has more than {PROFILES_MAX} profiles")
    profiles: list[AuthProfile] = []
    skipped: list[SkippedProfile] = []
    standing: dict[str, str] = {}
    for profile_id, entry in listed.items():
        if not _is_id(profile_id):
            why = f"its id is no printable text of at most {ID_CHARACTERS_MAX} characters"
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
    """The profile, or why it is none."""
    if not isinstance(entry, dict):
        return "it is no object"
    kind = entry.get("type")
    if kind == "oauth":
        return f"it {_OAUTH}"
    if not isinstance(kind, str) or kind not in _FIELDS:
        return 'its type is none of "api_key" and "token"'
    name = _env_name(entry)
    if name is None:
        return "its provider and env name no environment variable; write one into env"
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
    """A reference counts more than a text that stands beside it."""
    present = (entry.get(name) for name in _FIELDS[entry["type"]])
    return next((value for value in present if value is not None), None)


def _with_value(profile: AuthProfile, value: Any) -> AuthProfile:
    if isinstance(value, str):
        names = tuple(dict.fromkeys(variables_in(value)))
        standing = with_variables(value, dict.fromkeys(names, ""))
        return replace(
            profile,
            variables=names,
            # Text around a reference stands here too.
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
