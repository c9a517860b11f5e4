"""Variables for another PostgreSQL do not affect the embedded one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Conninfo

from infrastructure.outbound.embedded_postgres.data_directory import Home
from infrastructure.outbound.embedded_postgres.libpq import NOT_BY_URL, complete_url
from tests.support.servers.embedded_servers import PROJECT

HOSTILE = {
    "PGSERVICE": "nosuch",
    "PGSERVICEFILE": "/nowhere/services",
    "PGSYSCONFDIR": "/nowhere",
    "PGUSER": "somebody",
    "PGPASSWORD": "s3cret",
    "PGPASSFILE": "/nowhere/passwords",
    "PGDATABASE": "another",
    "PGHOST": "db.example",
    "PGHOSTADDR": "192.0.2.1",
    "PGPORT": "1",
    "PGCHANNELBINDING": "require",
    "PGCONNECT_TIMEOUT": "never",
    "PGCLIENTENCODING": "nonsense",
    "PGDATESTYLE": "nonsense",
    "PGTZ": "nonsense",
    "PGGEQO": "nonsense",
    "PGOPTIONS": "-c nonsense=1",
    "PGAPPNAME": "another",
    "PGSSLMODE": "verify-full",
    "PGREQUIRESSL": "1",
    "PGSSLNEGOTIATION": "direct",
    "PGSSLCERT": "/nowhere/cert",
    "PGSSLKEY": "/nowhere/key",
    "PGSSLCERTMODE": "require",
    "PGSSLROOTCERT": "system",
    "PGSSLCRL": "/nowhere/crl",
    "PGSSLCRLDIR": "/nowhere",
    "PGREQUIREPEER": "nosuch",
    "PGREQUIREAUTH": "scram-sha-256",
    "PGMINPROTOCOLVERSION": "latest",
    "PGMAXPROTOCOLVERSION": "nonsense",
    "PGSSLMINPROTOCOLVERSION": "TLSv1.3",
    "PGSSLMAXPROTOCOLVERSION": "TLSv1",
    "PGGSSENCMODE": "require",
    "PGGSSDELEGATION": "1",
    "PGKRBSRVNAME": "nosuch",
    "PGGSSLIB": "nonsense",
    "PGTARGETSESSIONATTRS": "standby",
    "PGLOADBALANCEHOSTS": "random",
    "PGSSLCOMPRESSION": "1",
    "PGSSLSNI": "nonsense",
    "PGDATA": "/nowhere",
}

_PROGRAM = """
import asyncio, json, sys
from pathlib import Path
from infrastructure.outbound.embedded_postgres.server import EmbeddedPostgres
from infrastructure.outbound.log.process import WorkerProcess
from infrastructure.outbound.log.schema.connections import open_connection, open_sync_connection
from tests.infrastructure.outbound.embedded_postgres import test_embedded_postgres_environment as it

used = EmbeddedPostgres.start(Path(sys.argv[1]), timeout_seconds=30)
async def reach():
    async with await open_connection(used.conninfo, application="test") as connection:
        return it.parameters(connection)
with WorkerProcess(it.work, {"conninfo": used.conninfo}) as worker:
    found = [it.reached(used.conninfo), asyncio.run(reach()), worker.receive()]
used.ensure_running()
used.close()
print(json.dumps(found))
"""


def parameters(connection: psycopg.Connection[object] | psycopg.AsyncConnection[object]) -> object:
    """Return the parameters of a connection."""
    return connection.info.get_parameters()


def reached(conninfo: str) -> object:
    """Open a connection and return its parameters."""
    with psycopg.connect(conninfo, application_name="spawnlog test") as connection:
        return parameters(connection)


def work(order: dict[str, str]) -> None:
    """Be a worker process that opens a connection."""
    print(json.dumps(reached(order["conninfo"])), flush=True)


@pytest.mark.kill
def test_no_variable_of_libpq_reaches_the_embedded_server(tmp_path: Path) -> None:
    own = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    found = []
    for variables in ({}, HOSTILE):
        ran = subprocess.run(
            [sys.executable, "-c", _PROGRAM, str(tmp_path / "postgres")],
            env={**own, **variables, "PYTHONPATH": str(PROJECT)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        found.append(json.loads(ran.stdout))
    assert found[1] == found[0]
    assert [item["host"] for item in found[1]] == [str(Home.at(tmp_path / "postgres").sockets)] * 3


def test_every_variable_of_libpq_is_tried() -> None:
    known = {item.envvar.decode() for item in Conninfo.get_defaults() if item.envvar is not None}
    assert known <= set(HOSTILE)
    assert set(NOT_BY_URL) <= set(HOSTILE)


def test_complete_url_leaves_nothing_to_the_environment(tmp_path: Path) -> None:
    url = complete_url(Home.at(tmp_path).conninfo(), tmp_path)
    left = {item.keyword for item in Conninfo.parse(url.encode()) if item.val is None}
    known = {item.keyword for item in Conninfo.get_defaults() if item.envvar is not None}
    assert left & known == {b"service"}


def test_embedded_server_of_another_user_is_not_talked_to(database_url: str) -> None:
    home = Home(Path(str(conninfo_to_dict(database_url)["host"])).parent)
    url = complete_url(database_url, home.data)
    with psycopg.connect(url) as connection:
        assert connection.info.get_parameters()["requirepeer"] == home.data.owner()
    impostor = url.replace(f"requirepeer={home.data.owner()}", "requirepeer=daemon")
    with pytest.raises(psycopg.OperationalError, match="requirepeer"):
        psycopg.connect(impostor)
