"""A pooler is refused unless each connection has a session of its own."""

import asyncio
from pathlib import Path

import pytest

from infrastructure.contract.errors import UserError
from infrastructure.outbound.log.rebuild.rebuild import rebuild
from infrastructure.outbound.log.verify.verify import VerifyOrder, run_verification
from infrastructure.server.database import migrate_database, open_database
from tests.support.builders.damaged_log import tell_all
from tests.support.builders.exported_logs import WHOLE, exported, imported, tables_of
from tests.support.servers.databases import Databases
from tests.support.servers.pgbouncer import pooled
from tests.support.servers.running_log import running_on

pytestmark = pytest.mark.server

SHARED = [
    ("transaction", ()),
    ("transaction", ("server_round_robin = 1", "min_pool_size = 2")),
    ("transaction", ("server_round_robin = 1", "min_pool_size = 3")),
    ("transaction", ("default_pool_size = 1",)),
    ("statement", ()),
]


@pytest.mark.parametrize(("mode", "more"), SHARED)
def test_shared_sessions_are_refused(
    database_url: str, tmp_path: Path, mode: str, more: tuple[str, ...]
) -> None:
    with pooled(database_url, mode, *more) as url:
        for start in (open_database, migrate_database):
            with pytest.raises(UserError, match="session pooling") as refused:
                start(url, tmp_path)
            assert "\n" not in str(refused.value)


async def test_session_pooling_works(
    databases: Databases, database_url: str, tmp_path: Path
) -> None:
    original = databases.create_empty()
    with pooled(original, "session") as url, pooled(database_url, "session") as second_url:
        migrate_database(url, tmp_path)
        open_database(url, tmp_path)
        async with running_on(url) as running:
            await tell_all(running, tmp_path)
        assert (await rebuild(url)).differing == 0
        file = tmp_path / "log.ndjson"
        exported(url, file, **WHOLE)
        await asyncio.to_thread(imported, second_url, file)
        for item in (url, second_url):
            order = VerifyOrder(state_file=tmp_path / "state.json")
            assert (await asyncio.to_thread(run_verification, item, order)).difference is None
    assert tables_of(original) == tables_of(database_url)
    databases.drop(original)
