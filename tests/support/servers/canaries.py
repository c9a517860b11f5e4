"""Search for texts in places where they must not be."""

import base64
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import psycopg
from psycopg import sql

from infrastructure.outbound.embedded_postgres.data_directory import Home
from tests.support.servers.server import Server


def encoded(canary: str) -> Iterator[str]:
    """Yield encodings of a text: base64 at each offset, and a URL without plain characters."""
    yield "".join(f"%{byte:02x}" for byte in canary.encode())
    for around in range(3):
        # The signs at both ends also occur in the surrounding text.
        inner = base64.b64encode((around * "x" + canary).encode()).decode()[4:-4]
        assert len(inner) >= 24
        yield inner
        yield inner.translate({ord("+"): "-", ord("/"): "_"})


def tables_with(data_dir: Path, canaries: Iterable[str]) -> Iterator[str]:
    """Yield the tables of the embedded server that contain one, in any form."""
    wanted = [form for canary in canaries for form in (canary, canary.encode().hex())]
    conninfo = Home.at(data_dir / "postgres").conninfo()
    with psycopg.connect(conninfo, autocommit=True) as connection:
        names = connection.execute(
            "SELECT table_schema, table_name FROM information_schema.tables"
            " WHERE table_type = 'BASE TABLE' AND table_schema NOT IN"
            " ('pg_catalog', 'information_schema')"
        ).fetchall()
        assert len(names) > 10
        for schema, name in names:
            table = sql.Identifier(str(schema), str(name))
            rows = connection.execute(sql.SQL("SELECT t::text FROM {} t").format(table))
            if any(form in str(row) for (row,) in rows for form in wanted):
                yield f"{schema}.{name}"


def files_with(folder: Path, canaries: Iterable[str], *, but: Iterable[Path] = ()) -> list[str]:
    """Return the files below a folder that contain one, including those of the database."""
    wanted = [canary.encode() for canary in canaries]
    left_out = {os.path.realpath(path) for path in but}
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_file() or os.path.realpath(path) in left_out:
            continue
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            continue
        if any(item in content for item in wanted):
            found.append(str(path.relative_to(folder)))
    return found


def answers_about(server: Server, run_ids: Sequence[str], keys: Sequence[str]) -> list[str]:
    """Return all answers of a server about these runs and sessions."""
    paths = ["/openapi.json", "/healthz", "/readyz", "/v1/lanes", "/v1/runs?limit=500"]
    paths += ["/v1/events?limit=500", *(f"/v1/agents?requester={key}" for key in keys)]
    kinds = "", "/events", "/transcript?tools=true&limit=500", "/prompt", "/explain"
    paths += [f"/v1/runs/{run_id}{kind}" for run_id in run_ids for kind in kinds]
    paths += [f"/v1/sessions/{key}{kind}" for key in keys for kind in ("", "/announcements")]
    answers = [server.http.get(path) for path in paths]
    # A run that was refused, or never started, has no prompt.
    odd = [str(response.url) for response in answers if response.status_code != 200]
    assert all(url.endswith("/prompt") for url in odd), odd
    return [f"{answer.url} {answer.headers} {answer.text}" for answer in answers]
