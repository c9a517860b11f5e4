"""Credential profiles: their form in a file, and the selection for a child.

Profiles never hold secret values, only where each value is stored.
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

DEFAULT_ENDING = ":default"
PROGRAM_VARIABLES = frozenset(
    {
        "BASH_ENV",
        "CLASSPATH",
        "ENV",
        "GCONV_PATH",
        "HOME",
        "IFS",
        "JAVA_TOOL_OPTIONS",
        "NODE_OPTIONS",
        "NODE_PATH",
        "PATH",
        "PERL5LIB",
        "PERL5OPT",
        "PYTHONHOME",
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "RUBYLIB",
        "RUBYOPT",
        "SHELL",
    }
)
"""Variables by which shells, interpreters and libraries find or run programs.

No profile may set them, so a credential never selects the executed program.
"""


_OF_LOADERS = ("LD_", "DYLD_")
_NO_LETTER = re.compile(r"[^A-Z0-9_]")


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthProfile:
    """A credential profile.

    The value is in a file, in server environment variables (all of which must be set), in the
    profile itself, or partly in the last two.

    Attributes:
        id: Id of the profile.
        env_name: Environment variable that passes the value to a child.
        variables: Server environment variables that the value refers to.
        file: Path of a file with the value, as written.
        stands_here: True if the profile itself contains the value.
        unusable: Reason why the value is not available; None if it is.
        expires_at_ms: Expiry in milliseconds since the epoch.
    """

    id: str
    env_name: str
    variables: tuple[str, ...] = ()
    file: str | None = None
    stands_here: bool = False
    unusable: str | None = None
    expires_at_ms: float | None = None


@dataclass(frozen=True, slots=True)
class SkippedProfile:
    """A profile that was skipped, with the reason. `id` is None if the id itself is invalid."""

    id: str | None
    why: str


@dataclass(frozen=True, slots=True)
class ProfileFile:
    """The profiles of one file, in file order."""

    profiles: tuple[AuthProfile, ...] = ()
    skipped: tuple[SkippedProfile, ...] = ()


NO_PROFILES = ProfileFile()
"""Content of a missing file."""


@dataclass(frozen=True, slots=True)
class FoundProfile:
    """A profile, and whether it belongs to the agent itself or to the main agent."""

    profile: AuthProfile
    is_own: bool


def default_variable(provider: str) -> str:
    """Return the provider's default variable, such as `OPENAI_API_KEY` for `openai`."""
    return _NO_LETTER.sub("_", provider.strip().upper()) + "_API_KEY"


def decides_program(variable: str) -> bool:
    """Return True if the variable affects which program is executed, so no profile may set it."""
    return variable in PROGRAM_VARIABLES or variable.startswith(_OF_LOADERS)


def merge_profiles(own: ProfileFile, main: ProfileFile) -> tuple[FoundProfile, ...]:
    """Return the agent's profiles, plus those of the main agent with other ids.

    An own profile hides the main agent's profile of the same id even if the own one is skipped.
    """
    own_ids = {profile.id for profile in own.profiles} | {skipped.id for skipped in own.skipped}
    return (
        *(FoundProfile(profile, True) for profile in own.profiles),
        *(FoundProfile(profile, False) for profile in main.profiles if profile.id not in own_ids),
    )


def select_profiles(
    found: Iterable[FoundProfile], taken: Collection[str]
) -> tuple[FoundProfile, ...]:
    """Select the profiles for a child, one per environment variable, sorted by variable.

    If several profiles set one variable, an own profile wins, then one whose id ends in `:default`,
    then the first by id.

    Args:
        found: All profiles of the agent.
        taken: Variables that the runtime sets itself; no profile is selected for them.
    """
    by_name: dict[str, FoundProfile] = {}
    for candidate in sorted(found, key=_precedence):
        if candidate.profile.env_name not in taken:
            by_name.setdefault(candidate.profile.env_name, candidate)
    return tuple(by_name[name] for name in sorted(by_name))


def _precedence(found: FoundProfile) -> tuple[bool, bool, str]:
    named = found.profile.id
    return not found.is_own, not named.endswith(DEFAULT_ENDING), named


@dataclass(frozen=True, slots=True)
class MissingCredential:
    """A credential that is required and not available.

    Attributes:
        name: Id of a profile, name of a variable, or name of a file.
        text: Problem in words.
        is_unset: True if it is a variable that is not set.
    """

    name: str
    text: str
    is_unset: bool = False


@dataclass(frozen=True, slots=True)
class FoundCredentials:
    """Credentials of an agent, without their values.

    Attributes:
        profile_ids: All profiles found for the agent.
        given: Profiles that a child receives.
        missing: Credentials that a child should receive, and that are not available.
    """

    profile_ids: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    missing: tuple[MissingCredential, ...] = ()


NOTHING_FOUND = FoundCredentials()
"""Credentials for runtimes that receive none."""
