"""A message that is sent with a wait for its reply."""

from typing import Any, cast

import pytest

from application.commands.context import CommandContext
from application.log.envelope import Actor
from application.queries.access import Caller
from application.queries.errors import QueryError
from infrastructure.inbound.mcp.tools.call import McpCall
from infrastructure.inbound.mcp.tools.subagents import send_and_wait


async def test_send_refuses_wait_without_read_before_it_sends() -> None:
    async def report(progress: float, message: str) -> None:
        raise AssertionError(message)

    call = McpCall(
        services=cast(Any, None),
        caller=Caller(
            actor=Actor("token", "control"), scopes=frozenset({"control"}), patterns=("*",)
        ),
        session_key="agent:main:main",
        arguments={},
        report=report,
        command=CommandContext(),
    )
    with pytest.raises(QueryError, match='lacks the scope "read"'):
        await send_and_wait(call, "x", "x", "hello", 30)
