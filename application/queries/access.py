"""Who may do what: callers, their scopes, and the sessions they may act for."""

from dataclasses import dataclass
from typing import Literal, Protocol
from uuid import UUID

from application.log.envelope import Actor
from application.ports.registry import Registry
from application.queries.errors import QueryError
from domain.configuration.configuration import Configuration
from domain.run.state import Run
from domain.session.role import ANCESTORS_MAX
from domain.values.text import fits

AccessScope = Literal["spawn", "read", "content", "control", "worker", "admin"]
ALL_SCOPES: frozenset[AccessScope] = frozenset(
    {"spawn", "read", "content", "control", "worker", "admin"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Somebody who showed a token. `patterns` are of session keys in their canonical form, `*`
    stands for anything; `run_id` is set for a child that acts with its own token."""

    actor: Actor
    scopes: frozenset[AccessScope]
    patterns: tuple[str, ...]
    run_id: UUID | None = None

    @property
    def sees_everything(self) -> bool:
        """Whether whole-log questions are open to it."""
        return "*" in self.patterns

    @property
    def only_session(self) -> str | None:
        """The one session it acts for; None when its patterns may fit more than one."""
        if len(self.patterns) != 1 or "*" in self.patterns[0]:
            return None
        return self.patterns[0]

    def may(self, scope: AccessScope) -> bool:
        """Whether it has the scope; `admin` has all."""
        return scope in self.scopes or "admin" in self.scopes

    def acts_for(self, session_key: str) -> bool:
        """Whether it may act for this session."""
        return any(fits(session_key, pattern) for pattern in self.patterns)


class TokenVerifier(Protocol):
    """Knows whose a token is."""

    async def caller_of(self, token: str) -> Caller | None:
        """The caller; None for a token that is unknown, expired or dead with its run."""
        ...


class Access:
    """Answers what depends on the record: who stands above whom."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def covers_session(self, caller: Caller, session_key: str) -> bool:
        """Whether a session is one the caller acts for, or below one."""
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
        """Whether a run belongs to what the caller may see: its own, or in a tree it acts for.

        `known` are the requesters that were looked up before for this caller: whoever asks about
        many runs keeps it, so that each requester is looked up once.
        """
        return await self.covers_child(caller, run.run_id, run.requester.session_key, known)

    async def covers_child(
        self, caller: Caller, run_id: UUID, requester: str, known: dict[str, bool] | None = None
    ) -> bool:
        """The same of a run of which no more is at hand than who asked for it."""
        if caller.sees_everything or caller.run_id == run_id:
            return True
        if known is None:
            return await self.covers_session(caller, requester)
        if requester not in known:
            known[requester] = await self.covers_session(caller, requester)
        return known[requester]

    async def is_sibling(self, caller: Caller, run: Run) -> bool:
        """Whether a run has the same requester as the caller's own run."""
        if caller.run_id is None:
            return False
        own = await self._registry.run(caller.run_id)
        return own is not None and own.requester.session_key == run.requester.session_key


def require_scope(caller: Caller, scope: AccessScope) -> None:
    """`QueryError` unless the caller has the scope."""
    if not caller.may(scope):
        raise QueryError("not_permitted", f'this token lacks the scope "{scope}"')


def require_whole_log(caller: Caller) -> None:
    """`QueryError` unless questions about the whole log are open to the caller."""
    if not caller.sees_everything:
        raise QueryError(
            "not_permitted", 'this is about the whole log and needs a token with the sessions "*"'
        )


def require_session_access(caller: Caller, session_key: str) -> None:
    """`QueryError` unless the caller may act for the session."""
    if not caller.acts_for(session_key):
        raise QueryError(
            "not_permitted", "this token does not act for that session; use the session's own"
        )


def require_agent_access(caller: Caller, agent_id: str, configuration: Configuration) -> None:
    """`QueryError` unless the caller may act for the agent's main session: whose agent a session is
    decides what it may spawn, so it is not to be had for the asking."""
    # Not `main`: under scope `global` that is one session of all agents, and tells of none.
    own = configuration.canonical_key(f"agent:{agent_id}:{configuration.session.main_key}")
    if not caller.acts_for(own):
        raise QueryError(
            "not_permitted",
            f'this token does not act for agent "{agent_id}"; leave agentIdOverride out',
        )
