"""A life as a LangGraph graph of three nodes with its PostgreSQL saver.

The result of a node is recorded before the next one begins (`durability="sync"`).
"""

import asyncio
from typing import TypedDict
from uuid import uuid4

from fastapi import FastAPI
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.graph import END, START, StateGraph
from measuring import TASK, answer_in_tasks, order, serve
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool


class State(TypedDict):
    text: str


async def prepare(state: State) -> State:
    return {"text": f"prepared: {state['text']}"}


async def execute(state: State) -> State:
    return {"text": f"done: {state['text']}"}


async def announce(state: State) -> State:
    return {"text": f"announced: {state['text']}"}


async def main() -> None:
    request = order()
    kept = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    async with AsyncConnectionPool(
        request["conninfo"], min_size=4, max_size=20, kwargs=kept
    ) as pool:
        saver = AsyncPostgresSaver(pool)
        await saver.setup()
        graph = StateGraph(State)
        for name, node in (("prepare", prepare), ("execute", execute), ("announce", announce)):
            graph.add_node(name, node)
        graph.add_edge(START, "prepare")
        graph.add_edge("prepare", "execute")
        graph.add_edge("execute", "announce")
        graph.add_edge("announce", END)
        compiled = graph.compile(checkpointer=saver)

        async def life() -> str:
            place = {"configurable": {"thread_id": str(uuid4())}}
            found = await compiled.ainvoke({"text": TASK}, place, durability="sync")
            return str(found["text"])

        app = FastAPI()

        @app.post("/lives")
        async def post_life() -> dict[str, str]:
            return {"result": await life()}

        if request["port"]:
            await serve(app, request["port"])
        else:
            await answer_in_tasks(life)


asyncio.run(main())
