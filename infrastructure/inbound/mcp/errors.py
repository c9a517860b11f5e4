"""Mapping of errors to the protocol, with the codes that HTTP uses."""

from collections.abc import Mapping
from typing import Any

from mcp.server.context import CallNext, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from application.commands.errors import ERROR_CODES, error_code
from application.queries.errors import QueryError
from infrastructure.inbound.mcp.tools.call import ToolInputError

READ = "resources/read"
ANSWERED: tuple[type[Exception], ...] = (QueryError, ToolInputError, *ERROR_CODES)
"""Errors that are returned to the caller as an answer."""


def failure_of(error: Exception) -> Mapping[str, Any]:
    """Return the answer of a tool call for one of these errors.

    Its text is written for a model. It also has the code that HTTP uses, and the details.
    """
    if isinstance(error, ToolInputError):
        return {"status": "error", "error": error.message}
    code = error.code if isinstance(error, QueryError) else error_code(error)
    details = error.details if isinstance(error, QueryError) else {}
    return {
        "status": "forbidden" if code == "not_permitted" else "error",
        "error": str(error),
        "code": code,
        **{name: value for name, value in details.items() if value is not None},
    }


async def answer_errors(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> Any:
    """Convert these errors to answers of the protocol; middleware for methods other than tools.

    The code of HTTP is in `data.code`, and the address of a resource in `data.uri`.
    """
    try:
        return await call_next(ctx)
    except ANSWERED as error:
        failure = failure_of(error)
        code = failure.get("code", "invalid_request")
        named = {"uri": str((ctx.params or {}).get("uri"))} if ctx.method == READ else {}
        kind = INTERNAL_ERROR if code == "unavailable" else INVALID_PARAMS
        raise MCPError(kind, failure["error"], {"code": code, **named}) from None
