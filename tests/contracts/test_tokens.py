"""Whose a token is: the administrator's, one of the configuration, or a running child's own."""

import base64
import secrets
from uuid import UUID

import pytest

from application.log.envelope import Actor
from application.queries.access import ALL_SCOPES
from infrastructure.outbound.identity.page_tokens import PostgresPageTokens, digest_of
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
SEAL = ChildTokenSigner(b"a" * 32)
READER = KnownToken("reader", digest_of("r" * 32), frozenset({"read"}), ("agent:main:*",))
MAIN = KnownToken("main", digest_of("m" * 32), frozenset({"spawn", "read"}), (ROOT,))


@pytest.fixture
def configured() -> list[KnownToken]:
    return [READER, MAIN]


@pytest.fixture
def tokens(postgres: RunningLog, configured: list[KnownToken]) -> KnownTokens:
    registry = PostgresRegistry(postgres.pool)
    return KnownTokens(
        admin_token(ADMIN), lambda: configured, SEAL, registry, PostgresPageTokens(postgres.pool)
    )


async def test_the_administrators_token_may_do_everything(tokens: KnownTokens) -> None:
    caller = await tokens.caller_of(ADMIN)
    assert caller is not None
    assert caller.actor == Actor(kind="token", token="admin")
    assert caller.scopes == ALL_SCOPES
    assert caller.sees_everything
    assert caller.run_id is None


async def test_a_configured_token_may_do_what_is_configured(
    tokens: KnownTokens, configured: list[KnownToken]
) -> None:
    reader = await tokens.caller_of("r" * 32)
    assert reader is not None
    assert reader.actor == Actor(kind="token", token="reader")
    assert (reader.scopes, reader.patterns) == (READER.scopes, READER.patterns)
    assert not reader.sees_everything
    assert not reader.may("spawn")
    main = await tokens.caller_of("m" * 32)
    assert main is not None
    assert main.actor == Actor(kind="token", token="main", session=ROOT)
    configured.remove(MAIN)
    assert await tokens.caller_of("m" * 32) is None


async def test_a_child_acts_for_its_own_session(tokens: KnownTokens, family: LoggedFamily) -> None:
    await family.queue("scout")
    await family.tell("scout", ask.claim())
    token = SEAL.mint(family.id("scout"), family.run("scout").epoch)
    await family.start("scout")
    caller = await tokens.caller_of(token)
    assert caller is not None
    assert caller.actor == Actor(
        kind="child", token=f"child:{family.id('scout')}", session=family.key("scout")
    )
    assert caller.patterns == (family.key("scout"),)
    assert caller.run_id == family.id("scout")
    assert caller.scopes == {"read", "content", "spawn", "control"}
    assert caller.acts_for(family.key("scout"))
    assert not caller.acts_for(ROOT)


async def test_whether_a_leaf_may_spawn_is_for_the_rules_to_say_and_it_controls_nobody(
    tokens: KnownTokens, family: LoggedFamily
) -> None:
    await family.spawn("leaf")
    await family.create("leaf", role="leaf", control_scope="none")
    await family.tell("leaf", ask.claim())
    caller = await tokens.caller_of(SEAL.mint(family.id("leaf"), family.run("leaf").epoch))
    assert caller is not None
    assert caller.scopes == {"read", "content", "spawn"}


async def test_without_the_tool_for_it_an_orchestrator_controls_nobody(
    tokens: KnownTokens, family: LoggedFamily
) -> None:
    await family.spawn("planner")
    await family.create("planner", plan=plan(tools_deny=("subagents",)))
    await family.tell("planner", ask.claim())
    token = SEAL.mint(family.id("planner"), family.run("planner").epoch)
    caller = await tokens.caller_of(token)
    assert caller is not None
    assert caller.scopes == {"read", "content", "spawn"}


async def test_a_childs_token_dies_with_its_run(tokens: KnownTokens, family: LoggedFamily) -> None:
    await family.begin("scout")
    token = SEAL.mint(family.id("scout"), family.run("scout").epoch)
    await family.tell("scout", ask.stop())
    assert await tokens.caller_of(token) is not None
    await family.end("scout")
    assert await tokens.caller_of(token) is None
    await family.announce("scout")
    assert await tokens.caller_of(token) is None


async def test_a_childs_token_dies_with_its_claim(
    tokens: KnownTokens, family: LoggedFamily
) -> None:
    await family.queue("scout")
    await family.tell("scout", ask.claim())
    lost = family.run("scout").epoch
    token = SEAL.mint(family.id("scout"), lost)
    assert await tokens.caller_of(token) is not None
    await family.tell("scout", ask.claim(holder="server-2", lost_epoch=lost))
    assert await tokens.caller_of(token) is None
    fresh = SEAL.mint(family.id("scout"), family.run("scout").epoch)
    assert await tokens.caller_of(fresh) is not None


async def test_a_token_of_no_run_at_all_is_nobodys(
    tokens: KnownTokens, family: LoggedFamily
) -> None:
    await family.queue("waiting")
    for epoch in range(8):
        assert await tokens.caller_of(SEAL.mint(family.id("waiting"), epoch)) is None
    assert await tokens.caller_of(SEAL.mint(run_id(77), 1)) is None


async def test_a_forged_token_is_nobodys(tokens: KnownTokens, family: LoggedFamily) -> None:
    await family.begin("scout")
    run, epoch = family.id("scout"), family.run("scout").epoch
    good = SEAL.mint(run, epoch)
    other_key = ChildTokenSigner(b"b" * 32).mint(run, epoch)
    other_run = SEAL.mint(run_id(9), epoch)
    data = base64.urlsafe_b64decode(good.removeprefix("slc_"))
    spliced = base64.urlsafe_b64decode(other_run.removeprefix("slc_"))
    forged = [
        other_key,
        _token(data[:20] + spliced[20:]),
        _token(data[:20] + bytes(24)),
        _token(data[:19] + bytes([data[19] ^ 1]) + data[20:]),
        _token(data[:-1] + bytes([data[-1] ^ 0x80])),
    ]
    for token in forged:
        assert token != good
        assert await tokens.caller_of(token) is None
    assert await tokens.caller_of(good) is not None


async def test_no_part_of_a_token_is_good_for_anything(
    tokens: KnownTokens, family: LoggedFamily
) -> None:
    await family.begin("scout")
    good = SEAL.mint(family.id("scout"), family.run("scout").epoch)
    for token in (good, ADMIN, "r" * 32):
        for length in range(len(token)):
            assert await tokens.caller_of(token[:length]) is None
        for more in ("=", "A", " ", "\0", "\n", "é"):
            assert await tokens.caller_of(token + more) is None
        assert await tokens.caller_of(token.swapcase()) is None


@pytest.mark.parametrize(
    "garbage",
    ["", " ", "slc_", "slc_====", "slc_é", "slc_" + "A" * 5_000, "sla_", "\0", "slc_\ud800"],
)
async def test_garbage_is_nobodys_token(tokens: KnownTokens, garbage: str) -> None:
    assert await tokens.caller_of(garbage) is None


def test_a_token_tells_nothing_but_its_run_and_claim_to_who_has_the_key() -> None:
    token = SEAL.mint(UUID(int=7), 3)
    assert SEAL.read(token) == (UUID(int=7), 3)
    assert ChildTokenSigner(b"b" * 32).read(token) is None
    assert SEAL.mint(UUID(int=7), 4) != token


def _token(data: bytes) -> str:
    return "slc_" + base64.urlsafe_b64encode(data).decode()
