"""Profiles of credentials: what a file says of each, and which of them a child is given.

No value is in any of it: a profile says where its value stands.
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
"""What shells, interpreters and libraries find programs by, or run something for. A value that a
child is to have is given in none of them, so that a profile never says what is executed."""


_OF_LOADERS = ("LD_", "DYLD_")
_NO_LETTER = re.compile(r"[^A-Z0-9_]")


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthProfile:
    """One profile. `env_name` is the variable in which a child gets its value.

    The value stands in a file (`file`, a path as it was written), in variables of the server
    (`variables`, all of which have to be set), in the profile itself (`stands_here`), or partly in
    the last two. `unusable` says why it can be had nowhere, None when it can.
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
    """A profile that is none of ours, and why; `id` is None when that is what is wrong with it."""

    id: str | None
    why: str


@dataclass(frozen=True, slots=True)
class ProfileFile:
    """What one file says, in its order."""

    profiles: tuple[AuthProfile, ...] = ()
    skipped: tuple[SkippedProfile, ...] = ()


NO_PROFILES = ProfileFile()
"""What a file says that is not there."""


@dataclass(frozen=True, slots=True)
class FoundProfile:
    """A profile, and whether it is the agent's own or the main agent's."""

    profile: AuthProfile
    is_own: bool


def default_variable(provider: str) -> str:
    """The variable that a provider's credentials are in when nobody says otherwise:
    `OPENAI_API_KEY` of `openai`."""
    return _NO_LETTER.sub("_", provider.strip().upper()) + "_API_KEY"


def decides_program(variable: str) -> bool:
    """Whether a variable decides what is executed, so that no profile may set it."""
    return variable in PROGRAM_VARIABLES or variable.startswith(_OF_LOADERS)


def merge_profiles(own: ProfileFile, main: ProfileFile) -> tuple[FoundProfile, ...]:
    """The agent's profiles, and those of the main agent whose id it does not have itself. An own
    one that is skipped hides the main agent's all the same."""
    ours = {one.id for one in own.profiles} | {one.id for one in own.skipped}
    return (
        *(FoundProfile(one, True) for one in own.profiles),
        *(FoundProfile(one, False) for one in main.profiles if one.id not in ours),
    )


def select_profiles(
    found: Iterable[FoundProfile], taken: Collection[str]
) -> tuple[FoundProfile, ...]:
    """The profiles that a child gets, one for each variable, in the order of those. `taken` are
    the variables that its runtime sets itself.

    Of two for one variable the agent's own is given, then the one whose id ends in `:default`,
    then the first of the alphabet.
    """
    by_name: dict[str, FoundProfile] = {}
    for one in sorted(found, key=_precedence):
        if one.profile.env_name not in taken:
            by_name.setdefault(one.profile.env_name, one)
    return tuple(by_name[name] for name in sorted(by_name))


def _precedence(found: FoundProfile) -> tuple[bool, bool, str]:
    named = found.profile.id
    return not found.is_own, not named.endswith(DEFAULT_ENDING), named


# What there is for the children of an agent, and what is missing.


@dataclass(frozen=True, slots=True)
class MissingCredential:
    """`name` is the id of a profile, the name of a variable or that of a file; `text` says what is
    the matter with it, and `is_unset` whether it is a variable that has to be set."""

    name: str
    text: str
    is_unset: bool = False


@dataclass(frozen=True, slots=True)
class FoundCredentials:
    """`profile_ids` are all that there are for the agent, `given` those that a child of it gets,
    `missing` what it would have to get and cannot. No values."""

    profile_ids: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    missing: tuple[MissingCredential, ...] = ()


NOTHING_FOUND = FoundCredentials()
"""For runtimes that are given no credentials."""
