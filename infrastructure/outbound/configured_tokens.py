"""The tokens that the active configuration gives out."""

import logging

from domain.configuration.problems import ConfigurationError
from domain.configuration.tokens import Token
from infrastructure.outbound.configuration.active import ActiveConfigurations
from infrastructure.outbound.configuration.loading import LoadedConfiguration
from infrastructure.outbound.tokens import KnownToken, digest_of

_log = logging.getLogger("spawnlog.tokens")


class ConfiguredTokens:
    """Reads each secret once a revision, and again when the file is read again; one that cannot be
    had is left out and warned about."""

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
            found = [self._read(token) for token in pinned.configuration.spawnlog.tokens]
            self._known = tuple(one for one in found if one is not None)
            self._revision, self._loaded = pinned.revision, loaded
        return self._known

    def _read(self, token: Token) -> KnownToken | None:
        try:
            text = self._configurations.loaded.resolve_token(token.token)
        except ConfigurationError as error:
            _log.warning("token %s cannot be used: %s", token.id, error)
            return None
        return KnownToken(token.id, digest_of(text), frozenset(token.scopes), token.sessions)
