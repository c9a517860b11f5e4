"""`POST /v1/what-if`: what another configuration would have decided, as lines of JSON."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing
from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from application.concurrency.bulkhead import BulkheadFull
from application.queries import what_if as queries
from application.queries.operation import Body
from application.queries.views.what_if import (
    WhatIfFailureView,
    WhatIfProgressView,
    WhatIfTotalsView,
    WhatIfVerdictView,
)
from application.queries.what_if import WhatIfAnswer, WhatIfRequest
from domain.values.moments import MOMENT_CHARACTERS_MAX
from domain.what_if.verdict import VerdictName
from infrastructure.inbound.http.requests.bodies import read_body
from infrastructure.inbound.http.requests.caller import (
    ByCaller,
    InjectedServices,
    position_headers,
)
from infrastructure.inbound.http.responses.described import (
    BODY_PROBLEMS,
    endpoint_responses,
    request_body_schema,
)
from infrastructure.inbound.http.responses.examples import EXAMPLES
from infrastructure.inbound.http.responses.problems import HttpProblem

router = APIRouter(tags=["log"])
MEDIA_TYPE = "application/x-ndjson"
CONFIG_CHARACTERS_MAX = 512 * 1024
NAME_CHARACTERS_MAX = 4096
PATCH_OPERATIONS_MAX = 1_000
AGENTS_MAX = 100
_AsOf = Annotated[str | None, Field(max_length=MOMENT_CHARACTERS_MAX)]
_Name = Annotated[str | None, Field(max_length=2048)]
LINES: tuple[type[BaseModel], ...] = (
    WhatIfVerdictView,
    WhatIfProgressView,
    WhatIfTotalsView,
    WhatIfFailureView,
)
"""A line is one of these."""


class WhatIfFilter(Body):
    """Which decisions: of one run, of the tree below a root session, of one requester, for any of
    these agents. With `cascade` the others are decided too, and not given out."""

    run_id: _Name = None
    tree: _Name = None
    requester: _Name = None
    agent_id: Annotated[list[str], Field(max_length=AGENTS_MAX)] = Field(default_factory=list)


class WhatIfBody(Body):
    """One of `config`, `configText` (JSON5) and `patch` (RFC 6902, of the revision that each
    decision was made under). `configName` is what `configText` is called where something is wrong
    in it: the name of its file. `from` and `to` are as-ofs. `only` are the verdicts that are given
    out, all when it is empty. `cascade` counts as if what is newly refused had never run, `prompts`
    composes the prompts again."""

    config: dict[str, Any] | None = None
    config_text: Annotated[str | None, Field(max_length=CONFIG_CHARACTERS_MAX)] = None
    config_name: Annotated[str | None, Field(min_length=1, max_length=NAME_CHARACTERS_MAX)] = None
    patch: Annotated[list[dict[str, Any]] | None, Field(max_length=PATCH_OPERATIONS_MAX)] = None
    from_: Annotated[_AsOf, Field(alias="from")] = None
    to: _AsOf = None
    filter: WhatIfFilter = Field(default_factory=WhatIfFilter)
    only: list[VerdictName] = Field(default_factory=list, max_length=20)
    cascade: bool = False
    prompts: bool = False


def _lines() -> dict[int | str, dict[str, Any]]:
    responses = endpoint_responses("not_found", "what_if_busy", *BODY_PROBLEMS)
    schema = {"oneOf": [{"$ref": f"#/components/schemas/{one.__name__}"} for one in LINES]}
    example = EXAMPLES["whatIf"]["lines"]
    responses[200]["content"] = {MEDIA_TYPE: {"schema": schema, "example": example}}
    return responses


class _LinesResponse(StreamingResponse):
    """Lines as they are made. `place` is given back when the answer ends, however it ends: also
    when nobody reads on, or its reader was gone before the first line."""

    media_type = MEDIA_TYPE

    lines: AsyncGenerator[bytes]
    place: AsyncExitStack

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self.place, aclosing(self.lines):
            await super().__call__(scope, receive, send)


@router.post(
    "/v1/what-if",
    operation_id="whatIf",
    response_class=_LinesResponse,
    summary="What another configuration would have decided",
    description=(
        "Decides recorded spawns and messages again under another configuration, each from the"
        " facts that were recorded for it: no script, runtime or hook is asked, nothing is looked"
        " up and nothing is written. A line of JSON for each decision with its verdict, one about"
        " once a second with how far it is, the totals last; an answer that ends with `failure`,"
        " or without totals, is not whole. It goes over the whole log, so it needs a token for"
        ' sessions "*", and scope `content` for `prompts`.'
    ),
    responses=_lines(),
    openapi_extra=request_body_schema(WhatIfBody, required=True),
)
async def what_if(request: Request, services: InjectedServices, caller: ByCaller) -> Response:
    """The verdicts."""
    body, _ = await read_body(request, WhatIfBody)
    answer = await queries.what_if(services, caller, _request(body))
    place = AsyncExitStack()
    try:
        await place.enter_async_context(services.processor_room.of("what-if"))
    except BulkheadFull:
        raise HttpProblem(
            "what_if_busy",
            f"this server answers {queries.AT_ONCE_MAX} such questions at once; ask again when one"
            " of them is done",
        ) from None
    headers = {**position_headers(services, answer.until), "X-Accel-Buffering": "no"}
    lines = _written(answer)
    response = _LinesResponse(lines, headers=headers)
    response.lines, response.place = lines, place
    return response


async def _written(answer: WhatIfAnswer) -> AsyncGenerator[bytes]:
    async with aclosing(answer.pages()) as pages:
        async for lines in pages:
            if lines:
                yield b"".join(line.json_bytes() + b"\n" for line in lines)


def _request(body: WhatIfBody) -> WhatIfRequest:
    return WhatIfRequest(
        config=body.config,
        config_text=body.config_text,
        config_name=body.config_name,
        patch=body.patch,
        since=body.from_,
        until=body.to,
        run_id=body.filter.run_id,
        tree=body.filter.tree,
        requester=body.filter.requester,
        agent_ids=tuple(body.filter.agent_id),
        only=tuple(body.only),
        cascade=body.cascade,
        prompts=body.prompts,
    )
