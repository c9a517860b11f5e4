"""The HTTP application: every endpoint, and what is the same for all of them."""

from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Match
from starlette.types import Scope

from application.envelope import WRITER_VERSION
from application.ports.event_log import LogUnavailable
from application.work import ContentsErased
from domain.refusals import Rejected
from infrastructure.failures import UserError
from infrastructure.inbound.http import (
    agents,
    controls,
    events,
    explanations,
    health,
    messages,
    run_records,
    runs,
    session_stops,
    sessions,
    shared_contexts,
    spawns,
    transcripts,
)
from infrastructure.inbound.http.direct import Direct
from infrastructure.inbound.http.doors import Doors
from infrastructure.inbound.http.guarding import Guard
from infrastructure.inbound.http.marking import Marks
from infrastructure.inbound.http.openapi import describe
from infrastructure.inbound.http.problems import Problem, answer_problem, problem_response

ROUTERS = (
    spawns.router,
    runs.router,
    run_records.router,
    explanations.router,
    controls.router,
    messages.router,
    session_stops.router,
    sessions.router,
    transcripts.router,
    shared_contexts.router,
    agents.router,
    events.router,
    health.router,
)


def create_application(doors: Doors) -> FastAPI:
    """The application, ready to serve."""
    handlers = _handlers()
    application = FastAPI(
        title="spawnlog",
        version=WRITER_VERSION,
        openapi_url="/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        exception_handlers=handlers,
    )
    application.state.doors = doors
    for router in ROUTERS:
        application.include_router(router)
    # The last one added is the outermost: the guard stands before everything.
    application.add_middleware(
        Direct, method="POST", path=spawns.PATH, endpoint=spawns.take, handlers=handlers
    )
    log = doors.work.log
    application.add_middleware(
        Guard,
        hosts=doors.hosts,
        marks=Marks(str(log.log_id), log.head, lambda: doors.tail.position),
    )
    application.openapi = lambda: describe(application, ROUTERS)  # type: ignore[method-assign]
    return application


def _handlers() -> dict[int | type[Exception], Any]:
    return {
        Problem: answer_problem,
        LogUnavailable: _unavailable,
        UserError: _unavailable,
        ContentsErased: _erased,
        Rejected: _rejected,
        RequestValidationError: _invalid,
        HTTPException: _plain,
        ClientDisconnect: _gone,
    }


async def _unavailable(request: Request, error: Exception) -> Response:
    return problem_response(Problem("unavailable", str(error)), request.scope)


async def _erased(request: Request, error: Exception) -> Response:
    return problem_response(Problem("erased", str(error)), request.scope)


async def _rejected(request: Request, error: Exception) -> Response:
    # Somebody else decided in between; the record says what.
    return problem_response(Problem("session_closed", str(error)), request.scope)


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    errors = [
        {"pointer": "".join(f"/{part}" for part in one["loc"]), "detail": one["msg"]}
        for one in error.errors()[:20]
    ]
    detail = f"{errors[0]['pointer']}: {errors[0]['detail']}"
    return problem_response(Problem("invalid_request", detail, errors=errors), request.scope)


async def _gone(request: Request, _: Exception) -> Response:
    # It left in the middle of its body, so nobody reads this.
    return problem_response(Problem("malformed_json", "the body is incomplete"), request.scope)


async def _plain(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = "method_not_allowed" if error.status_code == 405 else "not_found"
    text = "there is nothing here; see /openapi.json for what there is"
    headers = dict(error.headers or {})
    if "Allow" in headers:
        headers["Allow"] = _allowed(request.scope, headers["Allow"])
    return problem_response(Problem(code, text, headers=headers), request.scope)


def _allowed(scope: Scope, of_one_route: str) -> str:
    """The methods of a path: it may have several routes, and the framework names those of one."""
    methods = set(of_one_route.split(", "))
    for router in ROUTERS:
        for route in router.routes:
            if isinstance(route, APIRoute) and route.matches(scope)[0] is not Match.NONE:
                methods |= route.methods or set()
    return ", ".join(sorted(methods))
