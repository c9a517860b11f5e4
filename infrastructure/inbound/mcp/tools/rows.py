"""Operations as tools: arguments, answer and call are derived from the row of each."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any

from pydantic import ValidationError

from application.commands.services import CommandServices
from application.operations import OPERATIONS
from application.queries.access import Caller, require_scope
from application.queries.errors import validation_problem
from application.queries.operation import Operation, Tool
from application.queries.session_reference import UUID_TEXT, resolve_session_key
from application.queries.views.view import View
from infrastructure.inbound.mcp.tools.arguments import (
    OWN_SESSION,
    Properties,
    properties_of,
    read_arguments,
    text_of,
)
from infrastructure.inbound.mcp.tools.call import McpCall, ToolAnswer, answer_of
from infrastructure.inbound.mcp.tools.family import find_target
from infrastructure.inbound.mcp.tools.offered import OfferedTool

RUN, SESSION = "runId", "sessionKey"
TARGET_NAME = "target"
"""The argument of other tools that names a run; models confuse it with `runId`."""

_ARGUMENTS_OF_PATH = {"runId": RUN, "key": SESSION}
_PROPERTIES: Properties = {
    RUN: {
        "type": "string",
        "description": (
            "Run id; or a sub-agent by its number in the list, its label, its session key, or last."
            " A prefix of a label or run id is enough."
        ),
    },
    SESSION: {"type": "string", "description": OWN_SESSION},
}


def tools_of_rows() -> Sequence[OfferedTool]:
    """Return the tools of all operations that have one."""
    rows: dict[Tool, list[Operation]] = defaultdict(list)
    for operation in OPERATIONS:
        if operation.tool is not None:
            rows[operation.tool].append(operation)
    return [_tool_of(tool, same) for tool, same in rows.items()]


def _tool_of(tool: Tool, operations: Sequence[Operation]) -> OfferedTool:
    rows = sorted(operations, key=lambda row: -len(row.path_arguments))
    parameters = {row.name: _offered_parameters(row, tool) for row in rows}
    properties: dict[str, Mapping[str, Any]] = {}
    for row in rows:
        names = [_ARGUMENTS_OF_PATH[name] for name in row.path_arguments]
        properties |= {name: _PROPERTIES[name] for name in names}
        properties |= parameters[row.name]
    required = (RUN,) if RUN in rows[-1].path_arguments else ()

    async def answers(call: McpCall) -> ToolAnswer:
        arguments = {RUN: text_of(call.arguments.get(TARGET_NAME)), **call.arguments}
        given = read_arguments(properties, required, arguments)
        row = next(row for row in rows if RUN in given or RUN not in row.path_arguments)
        query = {name: given[name] for name in parameters[row.name] if name in given}
        if _is_of_a_requester(row, tool):
            query["requester"] = call.session_key
        path = await _path_values(row, call, given)
        return answer_of(await read_row(row, call.services, call.caller, path, query))

    assert rows[0].scope is not None
    assert {row.scope for row in rows} == {rows[0].scope}
    return OfferedTool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        scope=rows[0].scope,
        answers=answers,
        output=reduce(or_, [row.answer for row in rows]),
        properties=properties,
        required=required,
        also_read=(TARGET_NAME,) if RUN in properties else (),
    )


def _offered_parameters(row: Operation, tool: Tool) -> Properties:
    assert row.query is not None
    fields = row.query.model_fields.items()
    names = {field.alias for name, field in fields if name in tool.arguments}
    properties = properties_of(row.query).items()
    return {name: schema for name, schema in properties if name in names}


def _is_of_a_requester(row: Operation, tool: Tool) -> bool:
    assert row.query is not None
    return "requester" in row.query.model_fields and "requester" not in tool.arguments


async def _path_values(row: Operation, call: McpCall, given: Mapping[str, str]) -> dict[str, str]:
    """Return the path parameters. A run may have any of its names, a session its key or id."""
    values = {}
    for name, argument in row.path_arguments.items():
        if name == "runId":
            text = given[RUN]
            known = UUID_TEXT.fullmatch(text)
            values[argument] = text if known else (await find_target(call, text)).run_id
        elif SESSION not in given:
            values[argument] = call.session_key
        else:
            values[argument] = await resolve_session_key(
                call.services, call.caller, given[SESSION], pointer=f"/{SESSION}"
            )
    return values


async def read_row(
    row: Operation,
    services: CommandServices,
    caller: Caller,
    path: Mapping[str, str],
    query: Mapping[str, Any],
) -> View:
    """Call an operation that reads, with the same scope check as over HTTP.

    Raises:
        QueryError: The caller lacks the scope, a parameter is invalid, or the operation refuses.
    """
    assert row.scope is not None
    assert row.query is not None
    require_scope(caller, row.scope)
    try:
        parameters = row.query.model_validate(query)
    except ValidationError as failure:
        raise validation_problem(failure, query) from None
    answer = await row.handler(services=services, caller=caller, query=parameters, **path)
    view: View = answer.view
    return view
