"""A life as a Restate handler with three durable steps, served to a Restate server."""

import asyncio
import sys

import restate
from hypercorn.asyncio import serve as serve_http
from hypercorn.config import Config
from measuring import order, tell

lives = restate.Service("Lives")


@lives.handler()
async def live(ctx: restate.Context, task: str) -> str:
    prepared = await ctx.run_typed("prepare", lambda: f"prepared: {task}")
    result = await ctx.run_typed("execute", lambda: f"done: {prepared}")
    return await ctx.run_typed("announce", lambda: f"announced: {result}")


async def main() -> None:
    settings = Config()
    settings.bind = [f"127.0.0.1:{order()['port']}"]
    settings.accesslog = settings.errorlog = None
    over = asyncio.Event()
    serving = asyncio.create_task(
        serve_http(restate.app([lives]), settings, shutdown_trigger=over.wait)
    )
    tell({"ready": True})
    await asyncio.to_thread(sys.stdin.read)
    over.set()
    await serving


asyncio.run(main())
