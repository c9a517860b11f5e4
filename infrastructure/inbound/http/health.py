"""`/healthz` and `/readyz`: for those who watch the server; no token is needed."""

from fastapi import APIRouter, Response

from infrastructure.inbound.http.problems import Problem
from infrastructure.inbound.http.requests import InDoors, answer

router = APIRouter(tags=["health"])


@router.get(
    "/healthz",
    operation_id="getHealth",
    summary="Alive",
    description="The process answers.",
    responses={
        200: {
            "description": "Alive",
            "content": {"application/json": {"example": {"status": "ok"}}},
        }
    },
)
async def healthz(doors: InDoors) -> Response:
    """Alive."""
    return answer(doors, {"status": "ok"}, doors.tail.position)


@router.get(
    "/readyz",
    operation_id="getReadiness",
    summary="Ready",
    description="The database answers, its schema and format are known, the tail is not behind.",
    responses={
        200: {
            "description": "Ready",
            "content": {"application/json": {"example": {"status": "ready"}}},
        },
        503: {"description": "Not ready: the detail says why"},
    },
)
async def readyz(doors: InDoors) -> Response:
    """Ready."""
    readiness = doors.readiness()
    if not readiness.ready:
        raise Problem("unavailable", "; ".join(readiness.reasons))
    head = await doors.work.log.head()
    body = {"status": "ready", "head": head, "tail": doors.tail.position}
    return answer(doors, body, head)
