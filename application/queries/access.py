"""Callers, their scopes, and the sessions that they may act for."""

from dataclasses import dataclass
from typing import Literal, Protocol
from uuid import UUID

from application.log.envelope import Actor
from application.ports.registry import Registry
from application.queries.errors import QueryError
from domain.configuration.configuration import Configuration
from domain.run.state import Run
from domain.session.role import ANCESTORS_MAX
from domain.values.text import fits, quote_name

AccessScope = Literal["spawn", "read", "content", "control", "worker", "admin"]
PATTERNS_SHOWN_MAX = 5
ALL_SCOPES: frozenset[AccessScope] = frozenset(
    {"spawn", "read", "content", "control", "worker", "admin"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """A caller identified by a token.

    `patterns` match canonical session keys; `*` matches any text. `run_id` is set for a child that
    uses its own token.
    """

    actor: Actor
    scopes: frozenset[AccessScope]
    patterns: tuple[str, ...]
    run_id: UUID | None = None

    @property
    def sees_everything(self) -> bool:
        """Return True if the caller may query the whole log."""
        return "*" in self.patterns

    @property
    def only_session(self) -> str | None:
        """Return the only session that the caller acts for, or None if its patterns may match
        several."""
        if len(self.patterns) != 1 or "*" in self.patterns[0]:
            return None
        return self.patterns[0]

    def may(self, scope: AccessScope) -> bool:
        """Return True if the caller has the scope; `admin` includes every scope."""
        return scope in self.scopes or "admin" in self.scopes

    def acts_for(self, session_key: str) -> bool:
        """Return True if one of the caller's patterns matches the session key."""
        return any(fits(session_key, pattern) for pattern in self.patterns)


class TokenVerifier(Protocol):
    """Port that resolves a token to its caller."""

    async def caller_of(self, token: str) -> Caller | None:
        """Return the caller. None if the token is unknown, expired, or its run is over."""
        ...


class Access:
    """Access checks that depend on the record of sessions and their parents."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def covers_session(self, caller: Caller, session_key: str) -> bool:
        """Return True if the caller acts for the session or for one of its ancestors."""
        key: str | None = session_key
        for _ in range(ANCESTORS_MAX):
            if key is None:
                return False
            if caller.acts_for(key):
                return True
            session = await self._registry.session(key)
            key = session.spawned_by if session else None
        return False

    async def covers_run(
        self, caller: Caller, run: Run, known: dict[str, bool] | None = None
    ) -> bool:
        """Return True if the caller may see the run: its own run, or one in a tree that it acts
        for.

        `known` caches the result for each requester. A caller of this method that checks many runs
        keeps it, so that each requester is looked up once.
        """
        return await self.covers_child(caller, run.run_id, run.requester.session_key, known)

    async def covers_child(
        self, caller: Caller, run_id: UUID, requester: str, known: dict[str, bool] | None = None
    ) -> bool:
        """Return the result of `covers_run`, given only the run's id and requester."""
        if caller.sees_everything or caller.run_id == run_id:
            return True
        if known is None:
            return await self.covers_session(caller, requester)
        if requester not in known:
            known[requester] = await self.covers_session(caller, requester)
        return known[requester]

    async def is_sibling(self, caller: Caller, run: Run) -> bool:
        """Return True if the run has the same requester as the caller's own run."""
        if caller.run_id is None:
            return False
        own = await self._registry.run(caller.run_id)
        return own is not None and own.requester.session_key == run.requester.session_key


def require_scope(caller: Caller, scope: AccessScope) -> None:
    """Raise `QueryError` unless the caller has the scope."""
    if not caller.may(scope):
        raise QueryError("not_permitted", f'this token lacks the scope "{scope}"')


def require_whole_log(caller: Caller) -> None:
    """Raise `QueryError` unless the caller may query the whole log."""
    if not caller.sees_everything:
        raise QueryError(
            "not_permitted",
            'this reads the whole log, which requires a token for all sessions ("*")',
        )


def require_session_access(caller: Caller, session_key: str) -> None:
    """Raise `QueryError` unless the caller may act for the session."""
    if not caller.acts_for(session_key):
        raise foreign_session(caller)


def foreign_session(caller: Caller) -> QueryError:
    """Return the refusal of a session that the caller does not act for.

    It names the caller's sessions. It does not name the other one, whose key the caller may not
    know: a request may name it by its id.
    """
    shown = ", ".join(map(quote_name, caller.patterns[:PATTERNS_SHOWN_MAX]))
    more = ", …" if len(caller.patterns) > PATTERNS_SHOWN_MAX else ""
    return QueryError(
        "not_permitted",
        f"this token acts for {shown}{more}, not for the session of the request; name a session"
        " of its own, or use a token of that session",
    )


def require_agent_access(caller: Caller, agent_id: str, configuration: Configuration) -> None:
    """Raise `QueryError` unless the caller may act for the agent's main session.

    The agent of a session decides what it may spawn, so a caller must not choose it freely.
    """
    # Not `main`: under scope `global` all agents share that session, so it identifies none.
    own = configuration.canonical_key(f"agent:{agent_id}:{configuration.session.main_key}")
    if not caller.acts_for(own):
        raise QueryError(
            "not_permitted",
            f'this token does not act for agent "{agent_id}"; omit agentIdOverride',
        )
