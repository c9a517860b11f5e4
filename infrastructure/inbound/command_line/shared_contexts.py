"""`spawnlog session context`."""

import json
from collections.abc import Mapping
from typing import Any

from infrastructure.inbound.command_line.options import (
    As,
    At,
    DataDir,
    Output,
    SessionName,
    Url,
    connected,
)
from infrastructure.inbound.command_line.paths import path_of
from infrastructure.inbound.command_line.rendering import (
    print_fields,
    print_object,
    print_table,
)
from infrastructure.inbound.command_line.runs import short
from infrastructure.inbound.command_line.tables import Column, field
from infrastructure.inbound.command_line.times import clock

_SHOWN_MAX = 20


def _writer(source: Mapping[str, Any]) -> str | None:
    """Who patched it, or the run whose spawn brought it."""
    run_id = source.get("runId")
    return source.get("by") or (f"run {short(run_id)}" if run_id else None)


_KEYS = (
    Column("KEY", field("key")),
    Column("VALUE", field("value"), elastic=True),
    Column("WRITTEN BY", field("writer")),
    Column("POSITION", field("position"), right=True),
)
_HISTORY = (
    Column("POSITION", field("position"), right=True),
    Column("TIME", lambda change: clock(change.get("recordedAt"))),
    Column("CAUSE", field("cause")),
    Column("WRITTEN BY", _writer),
    Column("KEYS", lambda change: ", ".join(map(str, change.get("keys") or ())), elastic=True),
)
_STARTED = (
    Column("RUN", lambda start: short(start.get("runId"))),
    Column("VERSION", field("version"), right=True),
    Column("POSITION", field("position"), right=True),
    Column("LABEL", field("label"), elastic=True),
)


def get_context(
    session: SessionName,
    at: At = None,
    output: As = Output.TABLE,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Show what a session shares with its children: the values, who wrote them, who has which."""
    with connected(url, data_dir) as client:
        found = client.get(path_of("sessions", session, "shared-context"), {"at": at}).body
    if print_object(found, output):
        return
    print_fields(
        {
            "session": found.get("sessionKey") or session,
            "version": found.get("version"),
            "position": found.get("position"),
        }
    )
    sources = _mapping(found.get("sources"))
    _print(
        "shared",
        [
            {
                "key": key,
                "value": json.dumps(value, ensure_ascii=False, separators=(",", ":")),
                "writer": _writer(_mapping(sources.get(key))),
                "position": _mapping(sources.get(key)).get("position"),
            }
            for key, value in _mapping(found.get("values")).items()
        ],
        _KEYS,
    )
    _print("written, the last", found.get("history"), _HISTORY, _SHOWN_MAX)
    _print("started with, the last", found.get("startedWith"), _STARTED, _SHOWN_MAX)


def _print(
    heading: str, items: object, columns: tuple[Column, ...], most: int | None = None
) -> None:
    if not isinstance(items, list) or not items:
        return
    print(f"\n{heading}:")
    print_table([_mapping(item) for item in items][-most if most else 0 :], columns)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
