"""Scripts at URLs whose answer is cut off or slow: a failing status is told as it is."""

import asyncio
from pathlib import Path

import pytest

from infrastructure.outbound.scripts.http import HttpScripts
from tests.support.builders.scripts import script_run, source_in
from tests.support.servers.cut_answers import BODIES, answering

SLOW = b"Content-Length: 100\r\n\r\no"


async def failure(uri: str, seconds: float = 5) -> str | None:
    scripts = HttpScripts(source_in(Path("/"), str))
    return (await scripts.run(script_run(uri, timeout_seconds=seconds))).error


@pytest.mark.parametrize("name", ["cut", "cut chunk", "broken chunk"])
async def test_failing_status_is_told_beside_a_cut_body(name: str) -> None:
    async with answering("503 Busy", BODIES[name]) as url:
        assert await failure(url) == "HTTP 503: Busy"


async def test_failing_status_is_told_beside_a_slow_body() -> None:
    async with answering("503 Busy", SLOW, stays=True) as url, asyncio.timeout(10):
        assert await failure(url, 0.3) == "HTTP 503: Busy"


@pytest.mark.parametrize("name", ["cut", "cut chunk", "broken chunk"])
async def test_good_status_with_a_cut_body_is_a_failure(name: str) -> None:
    async with answering("200 OK", BODIES[name]) as url:
        assert await failure(url) == "Script broke the connection off"


async def test_redirect_that_leads_to_nobody_is_no_status() -> None:
    async with answering("302 Found", b"Location: /there\r\nContent-Length: 0\r\n\r\n") as url:
        assert await failure(url) == "Script redirects more than 3 times"
