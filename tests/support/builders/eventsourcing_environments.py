"""Environments for applications of the eventsourcing library, on a database of the tests."""

from itertools import count

FACTORY = "infrastructure.outbound.eventsourcing_log.factory"
_numbers = count(1)


def own_schema() -> str:
    """The name of a schema that no other test has."""
    return f"application_{next(_numbers)}"


def environment_of(database_url: str, schema: str = "", **more: str) -> dict[str, str]:
    """What a plain application needs to run on a log, with few connections."""
    named = {"POSTGRES_SCHEMA": schema} if schema else {}
    return {
        "PERSISTENCE_MODULE": FACTORY,
        "SPAWNLOG_DATABASE_URL": database_url,
        "POSTGRES_POOL_SIZE": "1",
        **named,
        **more,
    }
