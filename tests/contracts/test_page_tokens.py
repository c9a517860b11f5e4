"""Signing in to the page: a code works once, and its token is as good as the one that asked."""

import asyncio
import secrets

import pytest

from infrastructure.outbound.identity.page_tokens import (
    OF_ONE_ASKER_MAX,
    PAGE_PREFIX,
    PostgresPageTokens,
    digest_of,
)
from infrastructure.outbound.identity.tokens import (
    ChildTokenSigner,
    KnownToken,
    KnownTokens,
    admin_token,
)
from infrastructure.outbound.read_model.registry import PostgresRegistry
from tests.support.builders import run_commands as ask
from tests.support.builders.logged_family import LoggedFamily
from tests.support.servers.running_log import RunningLog

ADMIN = "sla_" + secrets.token_urlsafe(32)
READER = "r" * 32
SEAL = ChildTokenSigner(b"a" * 32)


@pytest.fixture
def configured() -> list[KnownToken]:
    return [KnownToken("reader", digest_of(READER), frozenset({"read"}), ("agent:main:*",))]


@pytest.fixture
def server(postgres: RunningLog, configured: list[KnownToken]) -> KnownTokens:
    return a_server(postgres, configured)


def a_server(postgres: RunningLog, configured: list[KnownToken]) -> KnownTokens:
    """The tokens as one server process knows them."""
    registry, pages = PostgresRegistry(postgres.pool), PostgresPageTokens(postgres.pool)
    return KnownTokens(admin_token(ADMIN), lambda: configured, SEAL, registry, pages)


async def signed_in(server: KnownTokens, token: str) -> str:
    """A token of the page, by a code."""
    code = await server.make_code(token)
    assert code is not None
    traded = await server.trade_code(code)
    assert traded is not None
    return traded


async def test_a_code_is_traded_once_at_any_server(
    postgres: RunningLog, server: KnownTokens, configured: list[KnownToken]
) -> None:
    other = a_server(postgres, configured)
    code = await server.make_code(READER)
    assert code is not None
    traded = await asyncio.gather(other.trade_code(code), server.trade_code(code))
    (token,) = [one for one in traded if one is not None]
    assert await server.trade_code(code) is None
    assert await server.trade_code("no-such-code") is None
    for one in (server, other):
        assert await one.caller_of(token) == await one.caller_of(READER)
    assert await server.caller_of(code) is None
    assert await server.trade_code(token) is None


async def test_its_token_is_what_the_one_that_asked_is_and_dies_with_it(
    server: KnownTokens, configured: list[KnownToken]
) -> None:
    token = await signed_in(server, READER)
    configured[0] = KnownToken("reader", digest_of(READER), frozenset({"spawn"}), ("*",))
    caller = await server.caller_of(token)
    assert caller is not None
    assert (caller.actor.token, caller.scopes, caller.sees_everything) == (
        "reader",
        frozenset({"spawn"}),
        True,
    )
    # The same id with another secret is another token.
    configured[0] = KnownToken("reader", digest_of("x" * 32), frozenset({"read"}), ("*",))
    assert await server.caller_of(token) is None


async def test_signing_out_ends_the_token_and_no_other(server: KnownTokens) -> None:
    first, second = await signed_in(server, ADMIN), await signed_in(server, ADMIN)
    assert await server.revoke(first)
    assert not await server.revoke(first)
    assert not await server.revoke(ADMIN)
    assert await server.caller_of(first) is None
    assert await server.caller_of(second) is not None
    assert await server.caller_of(ADMIN) is not None


async def test_what_is_over_is_good_for_nothing(postgres: RunningLog, server: KnownTokens) -> None:
    token, code = await signed_in(server, ADMIN), await server.make_code(ADMIN)
    assert code is not None
    async with postgres.pool.connection() as connection:
        row = await (
            await connection.execute(
                "SELECT bool_and(CASE kind WHEN 'code' THEN expires_at <= now() + interval '60 s'"
                " ELSE expires_at <= now() + interval '12 h' END), count(*) FROM page_tokens"
            )
        ).fetchone()
        assert row == (True, 2)
        await connection.execute("UPDATE page_tokens SET expires_at = now()")
    assert await server.trade_code(code) is None
    assert await server.caller_of(token) is None
    assert await server.make_code(ADMIN) is not None
    async with postgres.pool.connection() as connection:
        (left,) = await (await connection.execute("SELECT count(*) FROM page_tokens")).fetchall()
    assert left == (1,)


async def test_neither_a_child_nor_the_page_itself_makes_codes(
    server: KnownTokens, family: LoggedFamily
) -> None:
    await family.queue("scout")
    await family.tell("scout", ask.claim())
    child = SEAL.mint(family.id("scout"), family.run("scout").epoch)
    assert await server.caller_of(child) is not None
    for token in (child, await signed_in(server, ADMIN), "unknown"):
        assert await server.make_code(token) is None


async def test_nobody_can_sign_in_by_what_is_stored_and_there_is_not_more_than_so_much_of_it(
    postgres: RunningLog, server: KnownTokens
) -> None:
    token, code = await signed_in(server, ADMIN), await server.make_code(ADMIN)
    assert code is not None
    async with postgres.pool.connection() as connection:
        rows = await (
            await connection.execute("SELECT page_tokens::text FROM page_tokens")
        ).fetchall()
    assert len(rows) == 2
    for secret in (token, token.removeprefix(PAGE_PREFIX), code, ADMIN):
        for form in (secret, secret.encode().hex()):
            assert not any(form in row[0] for row in rows)
    async with postgres.pool.connection() as connection:
        await connection.execute(
            "INSERT INTO page_tokens SELECT sha256(one::text::bytea), 'token', %s,"
            " now() + interval '13 h' FROM generate_series(1, %s) AS one",
            [digest_of(ADMIN), OF_ONE_ASKER_MAX],
        )
    await server.make_code(ADMIN)
    async with postgres.pool.connection() as connection:
        (left,) = await (await connection.execute("SELECT count(*) FROM page_tokens")).fetchall()
    assert left == (OF_ONE_ASKER_MAX,)
    assert await server.caller_of(token) is None
