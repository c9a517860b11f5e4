"""Resolve the value of a profile. Errors contain no value and no path."""

from collections.abc import Mapping
from pathlib import Path

from application.ports.credentials import Credential
from domain.configuration.problems import ConfigurationError
from domain.configuration.secrets import variables_in, with_variables
from domain.plan.credentials import AuthProfile, MissingCredential
from domain.values.text import quote_name
from infrastructure.outbound.configuration.secrets import secret_in_file

VALUE_BYTES_MAX = 32 * 1024
VALUE_LINES_MAX = 200


def value_fault(text: str, *, is_whole: bool = True) -> str | None:
    """Return why a text is not a valid value, or None if it is valid.

    Args:
        text: The text.
        is_whole: False for a template into which variables are substituted; it may be blank.

    Returns:
        Words that follow the name of the profile, such as "has a value that is not UTF-8".
    """
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        return "has a value that is not UTF-8"
    if (is_whole and not text.strip()) or "\0" in text:
        return "has a value that is blank or contains NUL"
    if size > VALUE_BYTES_MAX or len(text.splitlines()) > VALUE_LINES_MAX:
        limits = f"{VALUE_BYTES_MAX} bytes or {VALUE_LINES_MAX} lines"
        return f"has a value of more than {limits}"
    return None


class UnresolvedProfileError(Exception):
    """The value of a profile cannot be resolved now."""

    def __init__(self, missing: MissingCredential) -> None:
        super().__init__(missing.text)
        self.missing = missing


def resolve_profile(
    profile: AuthProfile,
    folder: Path,
    standing: str | None,
    *,
    now: float,
    variables: Mapping[str, str],
) -> Credential:
    """Return the value of a profile. May block.

    Args:
        profile: The profile.
        folder: Folder to which paths are relative.
        standing: Text in the profile itself; None to check only the rest of the profile.
        now: Current time in seconds since 1970.
        variables: Environment variables by name.

    Raises:
        UnresolvedProfileError: The profile is unusable or expired, or its value is missing.
    """
    if profile.unusable is not None:
        raise _unresolved_error(profile, profile.unusable)
    if profile.expires_at_ms is not None and profile.expires_at_ms <= now * 1000:
        raise _unresolved_error(profile, "has expired")
    named = _values_of(profile, profile.variables, variables)
    if profile.file is not None:
        return _validate_value(profile, _read_from_file(profile, profile.file, folder, variables))
    if not profile.stands_here:
        return _validate_value(profile, "".join(named.values()))
    if standing is None:
        return Credential()
    return _validate_value(profile, with_variables(standing, named))


def _values_of(
    profile: AuthProfile, names: tuple[str, ...], variables: Mapping[str, str]
) -> dict[str, str]:
    for name in names:
        if not variables.get(name, "").strip():
            text = f"{name} of profile {quote_name(profile.id)} is not set"
            raise UnresolvedProfileError(MissingCredential(name, text, is_unset=True))
    return {name: variables[name] for name in names}


def _read_from_file(
    profile: AuthProfile, written: str, folder: Path, variables: Mapping[str, str]
) -> str:
    named = _values_of(profile, variables_in(written), variables)
    try:
        path = folder / Path(with_variables(written, named)).expanduser()
        if not path.exists():
            raise _unresolved_error(profile, "is in a file that does not exist")
        return secret_in_file(path)
    except ConfigurationError as failure:
        # Leave the path out: the caller of a spawn must not learn paths of this machine.
        why = failure.problems[0].message
        raise _unresolved_error(profile, f"is in a file that cannot be used: it {why}") from None
    except (OSError, RuntimeError, ValueError):
        raise _unresolved_error(profile, "is in a file that cannot be reached") from None


def _validate_value(profile: AuthProfile, text: str) -> Credential:
    fault = value_fault(text)
    if fault is not None:
        raise _unresolved_error(profile, fault)
    return Credential(text)


def _unresolved_error(profile: AuthProfile, why: str) -> UnresolvedProfileError:
    return UnresolvedProfileError(
        MissingCredential(profile.id, f"profile {quote_name(profile.id)} {why}")
    )
