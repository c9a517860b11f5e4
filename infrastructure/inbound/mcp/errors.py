"""Why something is not answered, in the form of the protocol."""

from collections.abc import Awaitable
from typing import TypeVar

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from application.commands.errors import ERROR_CODES
from application.log.event_log import LogUnavailable
from application.queries.errors import QueryError

T = TypeVar("T")


async def protocol_errors(asked: Awaitable[T]) -> T:
    """The answer to what is asked beside a call of a tool, or `MCPError` with what to do."""
    try:
        return await asked
    except QueryError as error:
        raise MCPError(INVALID_PARAMS, error.detail) from None
    except LogUnavailable as error:
        raise MCPError(INTERNAL_ERROR, str(error)) from None
    except tuple(ERROR_CODES) as error:
        raise MCPError(INVALID_PARAMS, str(error)) from None
