"""Routes of operations: each reads a request as its row describes and calls the handler."""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, get_origin

from pydantic import TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Scope

from application.commands.context import CommandContext, CommandResponse
from application.commands.idempotency import stored_answer
from application.concurrency.answer_first import answering
from application.log.event_log import AlreadyReserved, StoredAnswer
from application.queries.access import Caller, require_scope
from application.queries.errors import faults_of, invalid_value, invalid_values
from application.queries.operation import Operation, Parameters, Read
from application.queries.views.view import Answer, Lines, View
from application.queries.wait import reach_position
from infrastructure.contract.json_values import VALUES_MAX
from infrastructure.inbound.http.middleware.disconnects import presence_check, while_present
from infrastructure.inbound.http.requests.bodies import read_body
from infrastructure.inbound.http.requests.caller import (
    caller_of,
    header_of,
    json_response,
    position_headers,
    reservation_of,
    services_of,
    token_of,
    traceparent_of,
    view_response,
)
from infrastructure.inbound.http.requests.event_stream import prefers_stream
from infrastructure.inbound.http.requests.lines import LinesResponse
from infrastructure.inbound.http.requests.path_parameters import PATH_PARAMETERS
from infrastructure.inbound.http.requests.replies import REFUSALS, refusal_response
from infrastructure.inbound.http.requests.services import Services
from infrastructure.inbound.http.responses.problems import HttpProblem

VERSION_PATTERN = '"(0|[1-9][0-9]{0,18})"'
StreamFunction = Callable[..., Awaitable[Response]]
"""Answers an operation as a live stream. It takes the request and the arguments of the handler."""


class OperationRoute(Route):
    def __init__(self, operation: Operation, stream: StreamFunction | None = None) -> None:
        endpoint = _Endpoint(operation, stream)
        super().__init__(operation.path, endpoint, methods=[operation.method], name=operation.name)
        # Without `HEAD`, which Starlette adds to `GET`.
        self.methods = {operation.method}
        self.operation = operation

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        matched, child = super().matches(scope)
        # The request guard counts answers by the path of the route.
        return matched, {**child, "route": self}


class _Endpoint:
    """ASGI application of an operation. A class, to get the raw request from Starlette."""

    def __init__(self, operation: Operation, stream: StreamFunction | None) -> None:
        self._operation = operation
        self._stream = stream
        self._reads_parameters = _parameter_reader(operation)

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        request = Request(scope, receive, send)
        if "command" not in self._operation.takes:
            response = await self._respond(request)
            await response(scope, receive, send)
            return
        with answering():
            response = await self._respond(request)
            await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        operation = self._operation
        services = services_of(request)
        given: dict[str, Any] = {"services": services, "request": request}
        caller = None
        if operation.token:
            given["caller"] = caller = await caller_of(request)
            if operation.scope is not None:
                require_scope(caller, operation.scope)
        given |= self._reads_parameters(request)
        query = given.get("query")
        if isinstance(query, Read) and query.min_position is not None:
            await reach_position(services, query.min_position)
        raw = b""
        if operation.body is not None:
            given["body"], raw = await read_body(
                request,
                operation.body,
                values_max=operation.values_max or VALUES_MAX,
                media_types=operation.media_types,
            )
        if "command" in operation.takes:
            assert caller is not None
            return await self._command(request, services, caller, given, raw)
        if self._stream is not None and prefers_stream(request):
            return await self._stream(**given)
        waits = getattr(query, "wait", None) is not None
        if waits:
            # An unrequested body may be too large: read it, so that the limit applies.
            while (await request.receive()).get("more_body"):
                pass
            result = await while_present(request.scope, self._call(given))
        else:
            result = await self._call(given)
        if isinstance(result, Response):
            return result
        if isinstance(result, Lines):
            return LinesResponse(services, result)
        if isinstance(result, View):
            return Response(result.json_bytes(), operation.status, media_type="application/json")
        return self._answer(request, services, result)

    async def _call(self, given: Mapping[str, Any]) -> Any:
        takes = self._operation.takes
        return await self._operation.handler(
            **{name: value for name, value in given.items() if name in takes}
        )

    def _answer(self, request: Request, services: Services, answer: Answer[Any]) -> Response:
        operation = self._operation
        headers = {}
        if operation.etag is not None:
            headers["ETag"] = operation.etag(answer.view)
            if operation.if_none_match and _is_known(request, headers["ETag"]):
                headers |= position_headers(services, answer.position)
                return Response(status_code=304, headers=headers)
        return view_response(services, answer, status=operation.status, headers=headers)

    async def _command(
        self,
        request: Request,
        services: Services,
        caller: Caller,
        given: dict[str, Any],
        raw: bytes,
    ) -> Response:
        """Call a command once per idempotency key. A repeated request gets the recorded answer."""
        keyed = self._operation.repeat == "key"
        reservation = reservation_of(request, caller, raw) if keyed else None
        given["command"] = CommandContext(
            reservation=reservation,
            traceparent=traceparent_of(request),
            is_there=presence_check(request.scope),
            token=token_of(request) if services.tokens is not None else "",
            if_match=_version_given(request) if self._operation.if_match else None,
        )
        headers = {}
        try:
            result = await self._call(given)
        except AlreadyReserved as repeated:
            assert reservation is not None
            result = stored_answer(repeated.reserved, reservation)
            headers["Idempotent-Replayed"] = "true"
        if isinstance(result, Response):
            response = result
        elif isinstance(result, Answer):
            response = self._answer(request, services, result)
        else:
            answer, position = result if isinstance(result, CommandResponse) else (result, None)
            if position is None:
                position = await services.work.log.head()
            response = self._stored(request, services, answer, position)
        response.headers.update(headers)
        return response

    def _stored(
        self, request: Request, services: Services, answer: StoredAnswer, position: int
    ) -> Response:
        operation = self._operation
        if answer.kind in REFUSALS:
            return refusal_response(request, services, answer, position)
        body = {**answer.body, "position": position} if operation.shows_position else answer.body
        headers = {}
        if operation.location is not None:
            first = answer.body["runs"][0] if "runs" in answer.body else answer.body  # type: ignore[index]
            headers["Location"] = operation.location.format_map(first)
        status = operation.statuses.get(answer.kind, operation.status)
        return json_response(services, body, position, status=status, headers=headers)


def _require_known_names(fields: Mapping[str, bool], request: Request) -> None:
    """Refuse unknown parameters, and repetition of a parameter that takes one value."""
    for name in request.query_params:
        if name not in fields:
            known = ", ".join(fields) or "none"
            raise HttpProblem(
                "invalid_request",
                f"unknown parameter {name[:100]}; known: {known}",
                errors=({"pointer": f"/query/{name[:100]}", "detail": "unknown parameter"},),
            )
        if not fields[name] and len(request.query_params.getlist(name)) > 1:
            raise invalid_value(f"/query/{name}", "must be given only once")


def query_fields(query: type[Parameters] | None) -> dict[str, bool]:
    """Return the names of query parameters as in a URL, and whether each may be repeated."""
    if query is None:
        return {}
    return {
        field.alias or name: get_origin(field.annotation) is tuple
        for name, field in query.model_fields.items()
    }


def _parameter_reader(operation: Operation) -> Any:
    """Return a function that reads the path and query of a request as arguments of the handler."""
    path = {
        name: (python_name, TypeAdapter(PATH_PARAMETERS[name]))
        for name, python_name in operation.path_arguments.items()
    }
    fields = query_fields(operation.query)
    query = operation.query

    def read(request: Request) -> dict[str, Any]:
        if operation.token:
            _require_known_names(fields, request)
        values: dict[str, Any] = {}
        errors: list[dict[str, str]] = []
        for name, (python_name, adapter) in path.items():
            try:
                values[python_name] = adapter.validate_python(request.path_params[name])
            except ValidationError as failure:
                errors += faults_of(failure, None, f"/path/{name}")
        if query is not None:
            params = request.query_params
            given = {
                name: params.getlist(name) if repeats else params[name]
                for name, repeats in fields.items()
                if name in params
            }
            try:
                values["query"] = query.model_validate(given)
            except ValidationError as failure:
                errors += faults_of(failure, given, "/query")
        if errors:
            raise invalid_values(errors)
        return values

    return read


def _version_given(request: Request) -> int | None:
    """Return the version in `If-Match`, or None for `*`. Refuse any other value."""
    given = (header_of(request, "If-Match") or "").strip()
    if given == "*":
        return None
    version = re.fullmatch(VERSION_PATTERN, given)
    if version is None:
        raise invalid_value(
            "/headers/If-Match", 'must be the ETag that was read, such as "52", or *'
        )
    return int(version[1])


def _is_known(request: Request, etag: str) -> bool:
    """Return True if the caller has this version, according to `If-None-Match`."""
    given = ",".join(request.headers.getlist("if-none-match")).split(",")
    return bool({tag.strip().removeprefix("W/") for tag in given} & {etag, "*"})
