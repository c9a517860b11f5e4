"""Common part of the contenders' programs: report readiness, measure on request, report results.

It needs only Python, because each program runs in its own environment.
"""

import asyncio
import json
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

TASK = "Count to nothing and say that it is done."


def order() -> dict[str, Any]:
    """Return the order of the program: its only argument, as JSON."""
    return dict(json.loads(sys.argv[1]))


def tell(message: dict[str, Any]) -> None:
    """Print a line for the parent process."""
    print(json.dumps(message), flush=True)


def measured_in_threads(life: Callable[[], object], callers: int, seconds: float) -> dict[str, Any]:
    """Run lives one after the other in each of `callers` threads, for this time. Return latencies
    and duration in seconds."""
    latencies: list[float] = []
    ready = threading.Barrier(callers)

    def call() -> None:
        ready.wait()
        until = time.perf_counter() + seconds
        while (began := time.perf_counter()) < until:
            life()
            latencies.append(time.perf_counter() - began)

    with ThreadPoolExecutor(callers) as threads:
        began = time.perf_counter()
        running = [threads.submit(call) for _ in range(callers)]
        for item in running:
            item.result()
        took = time.perf_counter() - began
    return {"latencies": latencies, "seconds": took}


async def measured_in_tasks(
    life: Callable[[], Awaitable[object]], callers: int, seconds: float
) -> dict[str, Any]:
    """Run lives one after the other in each of `callers` tasks, for this time. Return latencies and
    duration in seconds."""
    latencies: list[float] = []

    async def repeat(until: float) -> None:
        while (began := time.perf_counter()) < until:
            await life()
            latencies.append(time.perf_counter() - began)

    began = time.perf_counter()
    await asyncio.gather(*(repeat(began + seconds) for _ in range(callers)))
    return {"latencies": latencies, "seconds": time.perf_counter() - began}


def answer_in_threads(life: Callable[[], object]) -> None:
    """Measure a blocking life for each order on stdin, until it ends."""
    tell({"ready": True})
    for line in sys.stdin:
        answer = json.loads(line)
        tell(measured_in_threads(life, answer["callers"], answer["seconds"]))


async def answer_in_tasks(life: Callable[[], Awaitable[object]]) -> None:
    """Measure an asynchronous life for each order on stdin, until it ends."""
    tell({"ready": True})
    while line := await asyncio.to_thread(sys.stdin.readline):
        answer = json.loads(line)
        tell(await measured_in_tasks(life, answer["callers"], answer["seconds"]))


async def serve(app: Any, port: int) -> None:
    """Serve HTTP until stdin ends."""
    import uvicorn

    settings = uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning")
    server = uvicorn.Server(settings)
    serving = asyncio.create_task(server.serve())
    while not server.started:
        if serving.done():
            return await serving
        await asyncio.sleep(0.01)
    tell({"ready": True})
    await asyncio.to_thread(sys.stdin.read)
    server.should_exit = True
    await serving
