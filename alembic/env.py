"""Run the migrations on the connection passed by the caller."""

from alembic import context
from sqlalchemy import Connection


def migrate(connection: Connection) -> None:
    context.configure(connection=connection, transactional_ddl=True, transaction_per_migration=True)
    with context.begin_transaction():
        context.run_migrations()


connection = context.config.attributes.get("connection")
if connection is None:
    raise RuntimeError("run the migrations with `spawnlog migrate`")
migrate(connection)
