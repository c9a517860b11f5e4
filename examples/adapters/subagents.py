"""Hands a task to a sub-agent of a spawnlog server and waits for its answer.

This is all that the adapters beside it have to do with HTTP. The environment says where, and for
whom: SPAWNLOG_URL, SPAWNLOG_TOKEN (scopes `spawn`, `read`, `content`), SPAWNLOG_SESSION_KEY.
"""

import os
import uuid

import httpx2

WAIT = {"wait": "30s", "until": "announced"}
OVER = ("announced", "archived", "refused")
REFUSALS = ("spawn_forbidden", "spawn_error")


async def answer_of_subagent(task: str, agent_id: str | None = None) -> str:
    """Return the result of the sub-agent, or an error that the model can act on, in words. Raise
    any other error."""
    async with httpx2.AsyncClient(
        base_url=os.environ["SPAWNLOG_URL"],
        headers={"Authorization": f"Bearer {os.environ['SPAWNLOG_TOKEN']}"},
        timeout=60,
    ) as client:
        spawn = {
            "requester": {"sessionKey": os.environ["SPAWNLOG_SESSION_KEY"]},
            "task": task,
            "agentId": agent_id,
        }
        # Under a key of its own, the request may be sent again without a second child.
        key = {"Idempotency-Key": str(uuid.uuid4())}
        answer = await client.post("/v1/spawns", json=spawn, headers=key)
        problem = "problem+json" in answer.headers.get("Content-Type", "")
        if problem and answer.json().get("code") in REFUSALS:
            return f"No sub-agent was spawned: {answer.json()['detail']}"
        answer.raise_for_status()
        run = {"runId": answer.json()["runId"], "stage": None}
        while run["stage"] not in OVER:
            answer = await client.get(f"/v1/runs/{run['runId']}", params=WAIT)
            answer.raise_for_status()
            run = answer.json()
            if run["continuedBy"] is not None and run["announcement"]["state"] == "skipped":
                # It ended its turn to wait, or was steered: another run goes on in its place, and
                # its answer is that one's.
                run = {"runId": run["continuedBy"], "stage": None}
    if run["stage"] == "refused":
        return f"No sub-agent was spawned: {run['error'] or 'it was refused'}"
    if run["outcome"] == "success":
        return run["resultText"] or "It is done, and said nothing."
    return f"The sub-agent ended as {run['outcome']}: {run['error'] or 'it did not say why'}"
