"""A life as an aggregate of the library eventsourcing, saved three times by its own recorder."""

import os

from eventsourcing.application import Application
from eventsourcing.domain import Aggregate, event
from measuring import TASK, answer_in_threads, order
from psycopg.conninfo import conninfo_to_dict

place = conninfo_to_dict(order()["conninfo"])
os.environ |= {
    "PERSISTENCE_MODULE": "eventsourcing.postgres",
    "POSTGRES_DBNAME": str(place["dbname"]),
    "POSTGRES_HOST": str(place["host"]),
    "POSTGRES_PORT": str(place.get("port", "5432")),
    "POSTGRES_USER": str(place["user"]),
    "POSTGRES_PASSWORD": str(place.get("password", "none")),
    "POSTGRES_POOL_SIZE": "16",
    "POSTGRES_MAX_OVERFLOW": "16",
}


class Life(Aggregate):
    @event("Prepared")
    def __init__(self, task: str) -> None:
        self.task = task
        self.result = ""

    @event("Executed")
    def execute(self, result: str) -> None:
        self.result = result

    @event("Announced")
    def announce(self, text: str) -> None:
        self.said = text


lives: Application = Application()


def live() -> None:
    life = Life(TASK)
    lives.save(life)
    life.execute(f"done: {TASK}")
    lives.save(life)
    life.announce(f"announced: {TASK}")
    lives.save(life)


answer_in_threads(live)
