"""A life as a DBOS workflow of three steps, each recorded before the next."""

import asyncio

from dbos import DBOS, DBOSConfig
from fastapi import FastAPI
from measuring import TASK, answer_in_threads, order, serve

request = order()
settings: DBOSConfig = {
    "name": "lives",
    "system_database_url": request["conninfo"],
    "run_admin_server": False,
    "enable_otlp": False,
    "log_level": "ERROR",
    "sys_db_pool_size": 32,
}
DBOS(config=settings)


@DBOS.step()
def prepare(task: str) -> str:
    return f"prepared: {task}"


@DBOS.step()
def execute(prepared: str) -> str:
    return f"done: {prepared}"


@DBOS.step()
def announce(result: str) -> str:
    return f"announced: {result}"


@DBOS.workflow()
def life(task: str) -> str:
    return str(announce(execute(prepare(task))))


app = FastAPI()


@app.post("/lives")
def post_life() -> dict[str, str]:
    return {"result": life(TASK)}


DBOS.launch()
if request["port"]:
    asyncio.run(serve(app, request["port"]))
else:
    answer_in_threads(lambda: life(TASK))
DBOS.destroy()
