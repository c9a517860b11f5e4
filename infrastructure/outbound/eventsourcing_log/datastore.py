"""The connections of an application to its schema."""

from collections.abc import Callable
from typing import Any

import psycopg
from eventsourcing.postgres import PostgresDatastore
from psycopg.rows import DictRow
from psycopg.sql import SQL, Identifier

from infrastructure.outbound.eventsourcing_log.settings import LogSettings
from infrastructure.outbound.log.postgres_log import channel_of
from infrastructure.outbound.log.schema.connections import CONNECT_TIMEOUT_SECONDS

LIVELINESS = {"keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3}
NAMED = ("dbname", "host", "port", "user", "password")


class LogDatastore(PostgresDatastore):
    """The library's pool, of connections that look into the application's schema alone.

    Snapshots, tracking and views of the library's own making work on it as on the library's.
    """

    def __init__(self, settings: LogSettings) -> None:
        named = {name: settings.connection.get(name, "") for name in NAMED}
        super().__init__(
            **named,
            connect_timeout=settings.connect_timeout_seconds,
            idle_in_transaction_session_timeout=settings.idle_in_transaction_timeout_seconds,
            pool_size=settings.pool_size,
            max_overflow=settings.pool_overflow,
            max_waiting=settings.pool_waiting_max,
            conn_max_age=settings.connection_age_seconds_max,
            pre_ping=settings.ping_first,
            lock_timeout=settings.lock_timeout_seconds,
            schema=settings.schema,
            get_password_func=settings.get_password,
            single_row_tracking=settings.single_row_tracking,
            originator_id_type=settings.originator_id_type,
        )
        assert isinstance(self.pool.kwargs, dict)
        more = {name: given for name, given in settings.connection.items() if name not in NAMED}
        self.pool.kwargs.update(
            {"application_name": "spawnlog eventsourcing", **LIVELINESS, **more}
        )
        self.channel = channel_of(self.schema)
        self.is_closed = False

    def after_connect_func(self) -> Callable[[psycopg.Connection[Any]], None]:
        """Sets a new connection up. It refers to no `self`, for the pool keeps it."""
        set_up = super().after_connect_func()
        statement = SQL(
            "SET search_path TO {};"
            " SET timezone = 'UTC'; SET synchronous_commit = on; SET jit = off"
        ).format(Identifier(self.schema))

        def after_connect(connection: psycopg.Connection[Any]) -> None:
            set_up(connection)
            connection.execute(statement)

        return after_connect

    def connect(self) -> psycopg.Connection[DictRow]:
        """A connection that does not belong to the pool, in autocommit mode."""
        assert isinstance(self.pool.kwargs, dict)
        given: dict[str, Any] = {"connect_timeout": CONNECT_TIMEOUT_SECONDS, **self.pool.kwargs}
        if self.pool.get_password_func:
            given["password"] = self.pool.get_password_func()
        connection: psycopg.Connection[DictRow] = psycopg.connect(**given)
        try:
            self.after_connect_func()(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def close(self) -> None:
        """Give all connections back to the server; those who still wait for events are told."""
        self.is_closed = True
        super().close()
