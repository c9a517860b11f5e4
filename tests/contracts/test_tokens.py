"""Owner of a token: the administrator, the configuration, a running child, or the page, with the
access of the token that requested it.
"""

import asyncio
import base64
import secrets
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from application.log.envelope import Actor
from application.queries.access import ALL_SCOPES, Caller
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
from tests.support.builders.storytelling import ROOT, plan, run_id
from tests.support.servers.running_log import RunningLog

ADMIN = "sla_" + secrets.token_urlsafe(32)
READER, MAIN = "r" * 32, "m" * 32
SEAL, OTHER_SEAL = ChildTokenSigner(b"a" * 32), ChildTokenSigner(b"b" * 32)
OF_READER = KnownToken("reader", digest_of(READER), frozenset({"read"}), ("agent:main:*",))
OF_MAIN = KnownToken("main", digest_of(MAIN), frozenset({"spawn", "read"}), (ROOT,))


@pytest.fixture
def configured() -> list[KnownToken]:
    return [OF_READER, OF_MAIN]


def known_tokens(postgres: RunningLog, configured: list[KnownToken]) -> KnownTokens:
    registry, pages = PostgresRegistry(postgres.pool), PostgresPageTokens(postgres.pool)
    return KnownTokens(admin_token(ADMIN), lambda: configured, SEAL, registry, pages)


@pytest.fixture
def tokens(postgres: RunningLog, configured: list[KnownToken]) -> KnownTokens:
    return known_tokens(postgres, configured)


async def caller_of(tokens: KnownTokens, token: str) -> Caller:
    caller = await tokens.caller_of(token)
    assert caller is not None
    return caller


async def is_nobodys(tokens: KnownTokens, token: str) -> bool:
    return await tokens.caller_of(token) is None


def token_of(family: LoggedFamily, name: str) -> str:
    return SEAL.mint(family.id(name), family.run(name).epoch)


async def claim(family: LoggedFamily, name: str, **created: Any) -> str:
    await family.spawn(name)
    await family.create(name, **created)
    await family.tell(name, ask.claim())
    return token_of(family, name)


async def test_administrators_token_may_do_everything(tokens: KnownTokens) -> None:
    caller = await caller_of(tokens, ADMIN)
    assert caller.actor == Actor(kind="token", token="admin")
    assert caller.scopes == ALL_SCOPES
    assert caller.sees_everything
    assert caller.run_id is None


async def test_configured_token_may_do_what_is_configured(
    tokens: KnownTokens, configured: list[KnownToken]
) -> None:
    reader = await caller_of(tokens, READER)
    assert reader.actor == Actor(kind="token", token="reader")
    assert (reader.scopes, reader.patterns) == (OF_READER.scopes, OF_READER.patterns)
    assert not reader.sees_everything
    assert not reader.may("spawn")
    main = await caller_of(tokens, MAIN)
    assert main.actor == Actor(kind="token", token="main", session=ROOT)
    configured.remove(OF_MAIN)
    assert await is_nobodys(tokens, MAIN)


# A child's own.


async def test_child_acts_for_its_own_session(tokens: KnownTokens, family: LoggedFamily) -> None:
    token = await claim(family, "scout")
    await family.start("scout")
    caller, key, scout = await caller_of(tokens, token), family.key("scout"), family.id("scout")
    assert caller.actor == Actor(kind="child", token=f"child:{scout}", session=key)
    assert (caller.patterns, caller.run_id) == ((key,), scout)
    assert caller.scopes == {"read", "content", "spawn", "control"}
    assert caller.acts_for(key)
    assert not caller.acts_for(ROOT)


@pytest.mark.parametrize(
    "created",
    [{"role": "leaf", "control_scope": "none"}, {"plan": plan(tools_deny=("subagents",))}],
    ids=["leaf", "without the tool for it"],
)
async def test_child_that_controls_nobody_may_ask_for_spawns(
    tokens: KnownTokens, family: LoggedFamily, created: dict[str, Any]
) -> None:
    """Whether it may spawn is decided by the rules."""
    caller = await caller_of(tokens, await claim(family, "scout", **created))
    assert caller.scopes == {"read", "content", "spawn"}


async def test_childs_token_dies_with_its_run(tokens: KnownTokens, family: LoggedFamily) -> None:
    await family.begin("scout")
    token = token_of(family, "scout")
    await family.tell("scout", ask.stop())
    assert not await is_nobodys(tokens, token)
    await family.end("scout")
    assert await is_nobodys(tokens, token)
    await family.announce("scout")
    assert await is_nobodys(tokens, token)


async def test_childs_token_dies_with_its_claim(tokens: KnownTokens, family: LoggedFamily) -> None:
    token, lost = await claim(family, "scout"), family.run("scout").epoch
    assert not await is_nobodys(tokens, token)
    await family.tell("scout", ask.claim(holder="server-2", lost_epoch=lost))
    assert await is_nobodys(tokens, token)
    assert not await is_nobodys(tokens, token_of(family, "scout"))


async def test_token_of_no_claim_is_nobodys(tokens: KnownTokens, family: LoggedFamily) -> None:
    await family.queue("waiting")
    for epoch in range(8):
        assert await is_nobodys(tokens, SEAL.mint(family.id("waiting"), epoch))
    assert await is_nobodys(tokens, SEAL.mint(run_id(77), 1))


def encoded(data: bytes) -> str:
    return "slc_" + base64.urlsafe_b64encode(data).decode()


async def test_forged_token_is_nobodys(tokens: KnownTokens, family: LoggedFamily) -> None:
    await family.begin("scout")
    run, epoch = family.id("scout"), family.run("scout").epoch
    good = SEAL.mint(run, epoch)
    data, spliced = (
        base64.urlsafe_b64decode(token.removeprefix("slc_"))
        for token in (good, SEAL.mint(run_id(9), epoch))
    )
    forged = [
        OTHER_SEAL.mint(run, epoch),
        encoded(data[:20] + spliced[20:]),
        encoded(data[:20] + bytes(24)),
        encoded(data[:19] + bytes([data[19] ^ 1]) + data[20:]),
        encoded(data[:-1] + bytes([data[-1] ^ 0x80])),
    ]
    for token in forged:
        assert token != good
        assert await is_nobodys(tokens, token)
    assert not await is_nobodys(tokens, good)


async def test_part_of_token_is_nobodys(tokens: KnownTokens, family: LoggedFamily) -> None:
    await family.begin("scout")
    for token in (token_of(family, "scout"), ADMIN, READER):
        for length in range(len(token)):
            assert await is_nobodys(tokens, token[:length])
        for more in ("=", "A", " ", "\0", "\n", "é"):
            assert await is_nobodys(tokens, token + more)
        assert await is_nobodys(tokens, token.swapcase())


@pytest.mark.parametrize(
    "garbage",
    ["", " ", "slc_", "slc_====", "slc_é", "slc_" + "A" * 5_000, "sla_", "\0", "slc_\ud800"],
)
async def test_garbage_is_nobodys(tokens: KnownTokens, garbage: str) -> None:
    assert await is_nobodys(tokens, garbage)


def test_token_tells_run_and_claim_to_who_has_the_key() -> None:
    token = SEAL.mint(UUID(int=7), 3)
    assert SEAL.read(token) == (UUID(int=7), 3)
    assert OTHER_SEAL.read(token) is None
    assert SEAL.mint(UUID(int=7), 4) != token


# Sign-in codes of the page: a code works once.


async def code_of(tokens: KnownTokens, token: str) -> str:
    code = await tokens.make_code(token)
    assert code is not None
    return code


async def sign_in(tokens: KnownTokens, token: str) -> str:
    traded = await tokens.trade_code(await code_of(tokens, token))
    assert traded is not None
    return traded


async def test_code_is_traded_once_at_any_server(
    postgres: RunningLog, tokens: KnownTokens, configured: list[KnownToken]
) -> None:
    second_tokens = known_tokens(postgres, configured)
    code = await code_of(tokens, READER)
    traded = await asyncio.gather(second_tokens.trade_code(code), tokens.trade_code(code))
    (token,) = [item for item in traded if item is not None]
    for wrong in (code, "no-such-code", token):
        assert await tokens.trade_code(wrong) is None
    for known in (tokens, second_tokens):
        assert await known.caller_of(token) == await known.caller_of(READER)
    assert await is_nobodys(tokens, code)


async def test_page_token_is_its_asker(tokens: KnownTokens, configured: list[KnownToken]) -> None:
    token = await sign_in(tokens, READER)
    configured[0] = replace(OF_READER, scopes=frozenset({"spawn"}), patterns=("*",))
    caller = await caller_of(tokens, token)
    assert (caller.actor.token, caller.scopes) == ("reader", frozenset({"spawn"}))
    assert caller.sees_everything
    # The same id with another secret is another token.
    configured[0] = replace(OF_READER, digest=digest_of("x" * 32))
    assert await is_nobodys(tokens, token)


async def test_signing_out_ends_one_token(tokens: KnownTokens) -> None:
    first, second = await sign_in(tokens, ADMIN), await sign_in(tokens, ADMIN)
    assert await tokens.revoke(first)
    assert not await tokens.revoke(first)
    assert not await tokens.revoke(ADMIN)
    assert await is_nobodys(tokens, first)
    for token in (second, ADMIN):
        assert not await is_nobodys(tokens, token)


async def test_expired_code_and_token_are_good_for_nothing(
    postgres: RunningLog, tokens: KnownTokens
) -> None:
    token, code = await sign_in(tokens, ADMIN), await code_of(tokens, ADMIN)
    assert await postgres.ask(
        "SELECT bool_and(CASE kind WHEN 'code' THEN expires_at <= now() + interval '60 s'"
        " ELSE expires_at <= now() + interval '12 h' END), count(*) FROM page_tokens"
    ) == [(True, 2)]
    await postgres.ask("UPDATE page_tokens SET expires_at = now()")
    assert await tokens.trade_code(code) is None
    assert await is_nobodys(tokens, token)
    await code_of(tokens, ADMIN)
    assert await postgres.ask("SELECT count(*) FROM page_tokens") == [(1,)]


async def test_child_and_page_make_no_codes(tokens: KnownTokens, family: LoggedFamily) -> None:
    child = await claim(family, "scout")
    assert not await is_nobodys(tokens, child)
    for token in (child, await sign_in(tokens, ADMIN), "unknown"):
        assert await tokens.make_code(token) is None


async def test_stored_rows_are_limited_and_sign_nobody_in(
    postgres: RunningLog, tokens: KnownTokens
) -> None:
    token, code = await sign_in(tokens, ADMIN), await code_of(tokens, ADMIN)
    rows = await postgres.ask("SELECT page_tokens::text FROM page_tokens")
    assert len(rows) == 2
    for secret in (token, token.removeprefix(PAGE_PREFIX), code, ADMIN):
        for form in (secret, secret.encode().hex()):
            assert not any(form in row[0] for row in rows)
    await postgres.ask(
        "INSERT INTO page_tokens SELECT sha256(one::text::bytea), 'token', %s,"
        " now() + interval '13 h' FROM generate_series(1, %s) AS one",
        *(digest_of(ADMIN), OF_ONE_ASKER_MAX),
    )
    await tokens.make_code(ADMIN)
    assert await postgres.ask("SELECT count(*) FROM page_tokens") == [(OF_ONE_ASKER_MAX,)]
    assert await is_nobodys(tokens, token)
