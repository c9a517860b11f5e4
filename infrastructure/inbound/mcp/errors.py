"""Why something is not answered, in the form of the protocol."""

from collections.abc import Awaitable
from typing import TypeVar

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from application.commands.errors import ERROR_CODES, error_code
from application.log.event_log import LogUnavailable
from application.queries.errors import QueryError

T = TypeVar("T")


async def protocol_errors(asked: Awaitable[T], **named: str) -> T:
    """The answer to what is asked beside a call of a tool, or `MCPError` with what to do: its data
    has the code that HTTP has for it, and what was `named`."""
    try:
        return await asked
    except QueryError as error:
        data = {"code": error.code, **named}
        raise MCPError(INVALID_PARAMS, error.detail, data) from None
    except tuple(ERROR_CODES) as error:
        kind = INTERNAL_ERROR if isinstance(error, LogUnavailable) else INVALID_PARAMS
        raise MCPError(kind, str(error), {"code": error_code(error), **named}) from None
