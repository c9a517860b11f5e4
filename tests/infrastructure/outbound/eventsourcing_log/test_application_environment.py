"""What an application's environment says: where its log is, who makes it, and by what class."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from eventsourcing.persistence import (
    InfrastructureFactoryError,
    IntegrityError,
    ProgrammingError,
)
from eventsourcing.postgres import PostgresTrackingRecorder
from eventsourcing.utils import get_topic, register_topic
from psycopg.conninfo import conninfo_to_dict

import infrastructure
from infrastructure.outbound.eventsourcing_log import settings
from infrastructure.outbound.eventsourcing_log.factory import CREATE_TABLE, LogFactory
from infrastructure.outbound.eventsourcing_log.recorder import (
    LogApplicationRecorder,
    RecorderConnection,
)
from infrastructure.outbound.log.schema.revision import newest_revision, scripts_folder
from tests.support.builders.application_logs import ask, whole_log
from tests.support.builders.eventsourcing_environments import environment_of, own_schema
from tests.support.builders.harbours import Harbour, Harbours

IDLE = "idle_in_transaction_session_timeout"
PROJECT = Path(__file__).parents[4]


def test_without_a_schema_in_its_environment_it_has_one_of_its_own_name(
    shared_database_url: str,
) -> None:
    with Harbours(env=environment_of(shared_database_url)) as harbours:
        harbours.open_harbour("Bremen")
    assert len(whole_log(shared_database_url, "harbours")) == 1


@pytest.mark.parametrize("schema", ['a "b" c', "100%", "Große Häfen", "a.b"])
def test_any_name_that_postgresql_takes_may_name_its_schema(
    shared_database_url: str, schema: str
) -> None:
    with Harbours(env=environment_of(shared_database_url, schema)) as harbours:
        harbours.open_harbour("Bremen")
    assert len(whole_log(shared_database_url, schema)) == 1


def test_the_variables_of_the_librarys_own_module_are_understood(shared_database_url: str) -> None:
    schema, parts = own_schema(), conninfo_to_dict(shared_database_url)
    env = environment_of("", schema)
    for name in ("dbname", "host", "port", "user", "password"):
        env[f"HARBOURS_POSTGRES_{name.upper()}"] = str(parts.get(name, ""))
    with Harbours(env=env) as harbours:
        harbours.open_harbour("Bremen")
    assert len(whole_log(shared_database_url, schema)) == 1


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {"lock_timeout": "10s", "statement_timeout": "30s", IDLE: "5s"}),
        (
            {"POSTGRES_LOCK_TIMEOUT": "60", "POSTGRES_IDLE_IN_TRANSACTION_SESSION_TIMEOUT": "0"},
            {"lock_timeout": "1min", "statement_timeout": "80s", IDLE: "0"},
        ),
    ],
)
def test_session_limits_follow_environment(
    shared_database_url: str, given: dict[str, str], expected: dict[str, str]
) -> None:
    factory = LogFactory(environment_of(shared_database_url, own_schema(), **given))
    try:
        with (
            factory.datastore.get_connection() as pooled,
            factory.datastore.connect() as single,
        ):
            for connection in (pooled, single):
                shown = {
                    name: (connection.execute(f"SHOW {name}").fetchone() or {})[name]
                    for name in expected
                }
                assert shown == expected
    finally:
        factory.close()


def password_of_a_test() -> str:
    asked_for_a_password.append(True)
    return "secret"


asked_for_a_password: list[bool] = []


def test_a_password_can_be_asked_for(shared_database_url: str) -> None:
    register_topic("password", password_of_a_test)
    env = environment_of(shared_database_url, own_schema(), POSTGRES_GET_PASSWORD_TOPIC="password")
    with Harbours(env=env) as harbours:
        harbours.open_harbour("Bremen")
    assert asked_for_a_password


def test_nothing_is_created_where_that_was_not_wanted(shared_database_url: str) -> None:
    schema = own_schema()
    env = environment_of(shared_database_url, schema, CREATE_TABLE="no")
    with pytest.raises(ProgrammingError, match="start once with CREATE_TABLE=yes"):
        Harbours(env=env)
    found = ask(
        shared_database_url, "public", "SELECT 1 FROM pg_namespace WHERE nspname = %s", schema
    )
    assert found == []


@pytest.fixture
def sailor(shared_database_url: str) -> Iterator[str]:
    """The URL of somebody who may make nothing in the database, but owns the schema `sailor`."""
    ask(shared_database_url, "public", "CREATE ROLE sailor")
    ask(shared_database_url, "public", "CREATE SCHEMA sailor AUTHORIZATION sailor")
    yield f"{shared_database_url}&options=-crole%3Dsailor"
    ask(shared_database_url, "public", "DROP OWNED BY sailor")
    ask(shared_database_url, "public", "DROP ROLE sailor")


def test_whoever_owns_a_schema_needs_no_other_right(sailor: str) -> None:
    with Harbours(env=environment_of(sailor, "sailor", IS_SNAPSHOTTING_ENABLED="yes")) as harbours:
        harbours.take_snapshot(harbours.open_harbour("Bremen"))
    assert len(whole_log(sailor, "sailor")) == 1
    with pytest.raises(ProgrammingError, match="cannot be made ready: permission denied"):
        Harbours(env=environment_of(sailor, own_schema()))


def test_a_schema_with_tables_of_the_same_names_is_left_as_it_was(shared_database_url: str) -> None:
    schema = own_schema()
    ask(
        shared_database_url, "public", f"CREATE SCHEMA {schema}; CREATE TABLE {schema}.runs (x int)"
    )
    with pytest.raises(ProgrammingError, match=f"{schema} cannot be made ready.*already exists"):
        Harbours(env=environment_of(shared_database_url, schema))
    tables = "SELECT tablename FROM pg_tables WHERE schemaname = %s"
    assert ask(shared_database_url, "public", tables, schema) == [("runs",)]


@pytest.fixture
def a_newer_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], str]:
    """To be called when it is time: from then on this program has one migration more."""
    newest, package = newest_revision(), tmp_path / "infrastructure"
    shutil.copytree(scripts_folder(), package / "migrations")
    migration = (
        "from alembic import op\n"
        f"revision, down_revision = '9999', '{newest}'\n"
        "def upgrade(): op.execute('CREATE TABLE newer (x int)')\n"
    )
    (package / "migrations" / "versions" / "9999_newer.py").write_text(migration)

    def install() -> str:
        monkeypatch.setattr(infrastructure, "__file__", str(package / "__init__.py"))
        return newest_revision()

    return install


def test_a_log_of_an_older_release_is_brought_up_to_date_unless_that_is_not_wanted(
    shared_database_url: str, a_newer_release: Callable[[], str]
) -> None:
    schema = own_schema()
    env = environment_of(shared_database_url, schema)
    with Harbours(env=env) as harbours:
        harbour = harbours.open_harbour("Bremen")
    assert a_newer_release() == "9999"
    with pytest.raises(ProgrammingError, match="no log of this release; start once with"):
        Harbours(env={**env, "CREATE_TABLE": "no"})
    with Harbours(env=env) as harbours:
        assert harbours.ships(harbour) == []
    assert ask(shared_database_url, schema, "SELECT version_num FROM alembic_version") == [
        ("9999",)
    ]


class Manifests(LogApplicationRecorder):
    """Writes what comes with the events into a table, in their transaction."""

    def insert_beside(self, connection: RecorderConnection, **kwargs: object) -> None:
        ship = kwargs.pop("manifest", None)
        if ship is not None:
            connection.execute("INSERT INTO manifests VALUES (%s)", [ship])
        super().insert_beside(connection, **kwargs)


def test_a_recorder_of_ones_own_writes_in_the_same_transaction(shared_database_url: str) -> None:
    schema = own_schema()
    register_topic("manifests", Manifests)
    env = environment_of(shared_database_url, schema, APPLICATION_RECORDER_TOPIC="manifests")
    with Harbours(env=env) as harbours:
        ask(shared_database_url, schema, "CREATE TABLE manifests (ship text PRIMARY KEY)")
        harbours.save(Harbour("Bremen"), manifest="Anna")
        with pytest.raises(IntegrityError, match="manifests_pkey"):
            harbours.save(Harbour("Hamburg"), manifest="Anna")
        with pytest.raises(ProgrammingError, match="does not know cargo"):
            harbours.save(Harbour("Hamburg"), manifest="Berta", cargo=1)
    assert ask(shared_database_url, schema, "SELECT ship FROM manifests") == [("Anna",)]
    assert len(whole_log(shared_database_url, schema)) == 1


def test_a_recorder_of_another_kind_is_refused(shared_database_url: str) -> None:
    topic = get_topic(PostgresTrackingRecorder)
    env = environment_of(shared_database_url, own_schema(), APPLICATION_RECORDER_TOPIC=topic)
    with pytest.raises(InfrastructureFactoryError, match="a kind of LogApplicationRecorder"):
        Harbours(env=env)


@pytest.mark.parametrize(
    ("env", "complaint"),
    [
        ({}, "no POSTGRES_DBNAME, POSTGRES_HOST, POSTGRES_USER, POSTGRES_PASSWORD"),
        ({"POSTGRES_DBNAME": "x", "POSTGRES_HOST": "x"}, "no POSTGRES_USER, POSTGRES_PASSWORD;"),
        ({"SPAWNLOG_DATABASE_URL": "postgresql://u:s3cret@h:x y"}, "is not a PostgreSQL URL"),
        (
            {"SPAWNLOG_DATABASE_URL": "postgresql://u:s3cret@h/d?options=-csearch_path%3Dmine"},
            "name it with POSTGRES_SCHEMA",
        ),
        ({"POSTGRES_SCHEMA": "pg_mine"}, "not beginning with pg_"),
        ({"POSTGRES_SCHEMA": "x" * 64}, "at most 63 bytes"),
        ({"POSTGRES_POOL_SIZE": "many"}, "POSTGRES_POOL_SIZE must be a number"),
        ({"POSTGRES_LOCK_TIMEOUT": "-1"}, "must not be negative"),
        ({"POSTGRES_PRE_PING": "perhaps"}, "must be yes or no"),
        ({"ORIGINATOR_ID_TYPE": "int"}, "must be 'uuid' or 'text'"),
        ({"POSTGRES_ENABLE_DB_FUNCTIONS": "yes"}, "cannot be had here"),
    ],
)
def test_an_environment_that_cannot_be_used_is_told_what_to_mend(
    env: dict[str, str], complaint: str
) -> None:
    usable = {"SPAWNLOG_DATABASE_URL": "postgresql:///x", "POSTGRES_SCHEMA": "mine"}
    named = any(name in env for name in ("SPAWNLOG_DATABASE_URL", "POSTGRES_DBNAME")) or not env
    if named:
        del usable["SPAWNLOG_DATABASE_URL"]
    with pytest.raises(OSError, match=complaint) as told:
        LogFactory({**usable, **env})
    assert "s3cret" not in str(told.value)


def test_an_application_without_a_name_needs_a_schema() -> None:
    with pytest.raises(OSError, match="needs POSTGRES_SCHEMA"):
        LogFactory({"SPAWNLOG_DATABASE_URL": "postgresql:///x"})


def test_every_variable_is_documented() -> None:
    document = (PROJECT / "docs" / "eventsourcing.md").read_text("utf-8")
    variables = {
        value for name, value in vars(settings).items() if name.isupper() and isinstance(value, str)
    }
    assert len(variables) > 15
    for variable in {*variables, CREATE_TABLE}:
        assert f"`{variable}" in document, variable
