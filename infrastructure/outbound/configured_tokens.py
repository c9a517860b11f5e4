"""The tokens that the active configuration gives out."""

import logging

from domain.configuration.configuration import Configuration
from domain.configuration.problems import ConfigurationError
from domain.configuration.settings import Token
from domain.values.session_key import InvalidSessionKey, fold_part
from domain.values.text import single_line
from infrastructure.outbound.configuration.active import ActiveConfigurations
from infrastructure.outbound.configuration.load import LoadedConfiguration
from infrastructure.outbound.identity.tokens import KnownToken, digest_of

_log = logging.getLogger("spawnlog.tokens")

ANY_SESSION = "*"
PATTERN_CHARACTERS_SHOWN_MAX = 200


class ConfiguredTokens:
    """Reads each secret once a revision, and again when the file is read again; one that cannot be
    had is left out and warned about. So is a pattern that fits no session: its token is good for
    the other ones."""

    def __init__(self, configurations: ActiveConfigurations) -> None:
        self._configurations = configurations
        self._revision = 0
        self._loaded: LoadedConfiguration | None = None
        self._known: tuple[KnownToken, ...] = ()

    def __call__(self) -> tuple[KnownToken, ...]:
        """The tokens of the revision that is active now."""
        pinned, loaded = self._configurations.current(), self._configurations.loaded
        # Read again, a file that has not changed is the same revision, but its secrets may differ.
        if pinned.revision != self._revision or loaded is not self._loaded:
            configuration = pinned.configuration
            found = [self._read(token, configuration) for token in configuration.spawnlog.tokens]
            self._known = tuple(one for one in found if one is not None)
            self._revision, self._loaded = pinned.revision, loaded
        return self._known

    def _read(self, token: Token, configuration: Configuration) -> KnownToken | None:
        try:
            text = self._configurations.loaded.resolve_token(token.token)
        except ConfigurationError as error:
            _log.warning("token %s cannot be used: %s", token.id, error)
            return None
        patterns = _patterns(token, configuration)
        return KnownToken(token.id, digest_of(text), frozenset(token.scopes), patterns)


def _patterns(token: Token, configuration: Configuration) -> tuple[str, ...]:
    """The token's patterns in the form that keys have, each once."""
    patterns: dict[str, None] = {}
    for written in token.sessions:
        try:
            patterns[_canonical_pattern(written, configuration)] = None
        except InvalidSessionKey as error:
            shown = single_line(written, characters_max=PATTERN_CHARACTERS_SHOWN_MAX)
            _log.warning('token %s: "%s" fits no session: %s', token.id, shown, error)
    return tuple(patterns)


def _canonical_pattern(pattern: str, configuration: Configuration) -> str:
    """A key in its one form; of a pattern with `*` what can be said without knowing the rest."""
    if "*" not in pattern:
        return configuration.canonical_key(pattern)
    parts = [fold_part(part) for part in pattern.split(":")]
    found = ":".join(part for part in parts if part)
    if found == ANY_SESSION != pattern.strip():
        # Who may do everything is not to be found by leaving something out.
        raise InvalidSessionKey("no key has an empty part. Write * alone for every session.")
    return found
