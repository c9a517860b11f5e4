"""Tokens: the admin token, those of the configuration, of the page, and child tokens.

Child tokens are not stored. Each contains the run and the epoch of its claim, signed with a key of
the data directory. It is valid as long as that claim holds the run.
"""

import base64
import binascii
import hmac
import logging
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from uuid import UUID

from application.log.envelope import Actor
from application.ports.configurations import Configurations
from application.ports.registry import Registry
from application.queries.access import ALL_SCOPES, AccessScope, Caller
from domain.configuration.configuration import Configuration
from domain.configuration.problems import ConfigurationError
from domain.configuration.settings import Token
from domain.plan.tools import CONTROL_TOOL, permits_tool
from domain.run.state import Run
from domain.values.session_key import InvalidSessionKeyError, fold_part
from domain.values.text import single_line
from infrastructure.outbound.configuration.files import RevisionFiles
from infrastructure.outbound.configuration.load import LoadedConfiguration
from infrastructure.outbound.identity.page_tokens import PAGE_PREFIX, PostgresPageTokens, digest_of

CHILD_PREFIX = "slc_"
SIGNATURE_BYTES = 24
_FORM = ">16sI"


@dataclass(frozen=True, slots=True)
class KnownToken:
    """A token that is looked up by its digest; the token itself is not stored."""

    id: str
    digest: bytes
    scopes: frozenset[AccessScope]
    patterns: tuple[str, ...]


def admin_token(token: str) -> KnownToken:
    """Return the admin token: all scopes, all sessions."""
    return KnownToken("admin", digest_of(token), ALL_SCOPES, ("*",))


class ChildTokenSigner:
    """Implementation of `ChildTokens`, which also verifies them."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def mint(self, run_id: UUID, epoch: int) -> str:
        """Return the token of a run for one claim."""
        body = struct.pack(_FORM, run_id.bytes, epoch)
        return CHILD_PREFIX + base64.urlsafe_b64encode(body + self._seal(body)).decode()

    def read(self, token: str) -> tuple[UUID, int] | None:
        """Return the run and epoch of a token; None if the signature is invalid."""
        try:
            data = base64.b64decode(
                token.removeprefix(CHILD_PREFIX).encode(), altchars=b"-_", validate=True
            )
        except (binascii.Error, ValueError):
            return None
        size = struct.calcsize(_FORM)
        body, seal = data[:size], data[size:]
        if len(body) != size or not hmac.compare_digest(seal, self._seal(body)):
            return None
        run_bytes, epoch = struct.unpack(_FORM, body)
        return UUID(bytes=run_bytes), epoch

    def _seal(self, body: bytes) -> bytes:
        return hmac.digest(self._key, body, "sha256")[:SIGNATURE_BYTES]


class KnownTokens:
    """Implementation of `TokenVerifier` and `PageTokens`. `configured` returns the active
    tokens."""

    def __init__(
        self,
        admin: KnownToken,
        configured: Callable[[], Iterable[KnownToken]],
        seal: ChildTokenSigner,
        registry: Registry,
        pages: PostgresPageTokens,
    ) -> None:
        self._pages = pages
        self._admin = admin
        self._configured = configured
        self._seal = seal
        self._registry = registry

    async def caller_of(self, token: str) -> Caller | None:
        """Return the caller with this token; None if the token is unknown or no longer valid."""
        if token.startswith(CHILD_PREFIX):
            return await self._child(token)
        digest = digest_of(token)
        if token.startswith(PAGE_PREFIX):
            asker = await self._pages.asker_of(token)
            # A configured token may have the same prefix as those of the page.
            digest = digest if asker is None else asker
        found = self._known(digest)
        if found is None:
            return None
        only = found.patterns[0] if len(found.patterns) == 1 else None
        session = only if only is not None and "*" not in only else None
        return Caller(
            actor=Actor(kind="token", token=found.id, session=session),
            scopes=found.scopes,
            patterns=found.patterns,
        )

    def _known(self, digest: bytes) -> KnownToken | None:
        found: KnownToken | None = None
        # Compare with all of them, so that the time reveals nothing.
        for known in (self._admin, *self._configured()):
            if hmac.compare_digest(known.digest, digest):
                found = known
        return found

    async def make_code(self, token: str) -> str | None:
        """Return a sign-in code for the page; None unless the token is the admin's or
        configured."""
        known = self._known(digest_of(token))
        return await self._pages.make_code(known.digest) if known is not None else None

    async def trade_code(self, code: str) -> str | None:
        """Exchange a code for a token of the page; None if the code is unknown or expired."""
        return await self._pages.trade_code(code)

    async def revoke(self, token: str) -> bool:
        """Revoke a token of the page. Return True if it existed."""
        return await self._pages.revoke(token)

    async def _child(self, token: str) -> Caller | None:
        read = self._seal.read(token)
        if read is None:
            return None
        run_id, epoch = read
        run = await self._registry.run(run_id)
        if run is None or run.epoch != epoch or run.holder is None:
            return None
        assert run.child_session_key is not None
        return Caller(
            actor=Actor(kind="child", token=f"child:{run_id}", session=run.child_session_key),
            scopes=_child_scopes(run),
            patterns=(run.child_session_key,),
            run_id=run_id,
        )


def _child_scopes(run: Run) -> frozenset[AccessScope]:
    # Always with `spawn`: the rules decide whether it may, and record the decision.
    own: frozenset[AccessScope] = frozenset({"read", "content", "spawn"})
    may_control = run.plan is not None and permits_tool(run.plan, CONTROL_TOOL)
    return own | {"control"} if run.control_scope == "children" and may_control else own


_log = logging.getLogger("spawnlog.tokens")
ANY_SESSION = "*"
PATTERN_CHARACTERS_SHOWN_MAX = 200


class ConfiguredTokens:
    """Tokens of the active configuration.

    Each secret is read once per revision, and again when the file is reloaded. A token whose secret
    is unavailable is left out with a warning. A pattern that matches no session is dropped with a
    warning; the token stays valid for its other patterns.
    """

    def __init__(self, configurations: Configurations, files: RevisionFiles) -> None:
        self._configurations = configurations
        self._files = files
        self._revision = 0
        self._loaded: LoadedConfiguration | None = None
        self._known: tuple[KnownToken, ...] = ()

    def __call__(self) -> tuple[KnownToken, ...]:
        """Return the tokens of the active revision."""
        pinned = self._configurations.current()
        loaded = self._files.file_of(pinned)
        # A reloaded file without changes is the same revision, but its secrets may differ.
        if pinned.revision != self._revision or loaded is not self._loaded:
            configuration = pinned.configuration
            tokens = configuration.spawnlog.tokens
            found = [_read_token(token, configuration, loaded) for token in tokens]
            self._known = tuple(known for known in found if known is not None)
            self._revision, self._loaded = pinned.revision, loaded
        return self._known


def _read_token(
    token: Token, configuration: Configuration, loaded: LoadedConfiguration
) -> KnownToken | None:
    try:
        text = loaded.resolve_token(token.token)
    except ConfigurationError as error:
        _log.warning("token %s cannot be used: %s", token.id, error)
        return None
    patterns = _patterns(token, configuration)
    return KnownToken(token.id, digest_of(text), frozenset(token.scopes), patterns)


def _patterns(token: Token, configuration: Configuration) -> tuple[str, ...]:
    """Return the patterns of a token in canonical form, without duplicates."""
    patterns: dict[str, None] = {}
    for written in token.sessions:
        try:
            patterns[_canonical_pattern(written, configuration)] = None
        except InvalidSessionKeyError as error:
            shown = single_line(written, characters_max=PATTERN_CHARACTERS_SHOWN_MAX)
            _log.warning('token %s: "%s" matches no session: %s', token.id, shown, error)
    return tuple(patterns)


def _canonical_pattern(pattern: str, configuration: Configuration) -> str:
    """Return a session key in canonical form. A pattern with `*` is normalized part by part."""
    if "*" not in pattern:
        return configuration.canonical_key(pattern)
    parts = [fold_part(part) for part in pattern.split(":")]
    found = ":".join(part for part in parts if part)
    if found == ANY_SESSION != pattern.strip():
        # Access to all sessions must be written as `*`, not result from an omission.
        raise InvalidSessionKeyError(
            "a session key has no empty part. Write * alone for every session."
        )
    return found
