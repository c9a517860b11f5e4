"""A session in a terminal: its runs, and the context that it shares with its children."""

import json
from collections.abc import Mapping
from typing import Any

from infrastructure.inbound.command_line.display.forms import short_id
from infrastructure.inbound.command_line.display.output import JsonObject, print_note, print_table
from infrastructure.inbound.command_line.display.tables import TableColumn, value_of
from infrastructure.inbound.command_line.display.times import format_instant

_RUNS_SHOWN_MAX = 20
_OWN_COLUMNS = (
    TableColumn("RUN", lambda run: short_id(run.get("runId"))),
    TableColumn("STAGE", value_of("stage")),
    TableColumn("CONTINUES", lambda run: short_id(run.get("continues"))),
)
_RUN_COLUMNS = (
    TableColumn("RUN", lambda run: short_id(run.get("runId"))),
    TableColumn("STAGE", value_of("stage")),
    TableColumn("AGENT", value_of("agentId")),
    TableColumn("LABEL", value_of("label"), elastic=True),
)


def print_session_runs(session: JsonObject) -> None:
    """Print the session's own runs, and the runs that it spawned."""
    _print_runs("own runs", session.get("ownRuns"), _OWN_COLUMNS, "`spawnlog run list`")
    _print_runs("spawned", session.get("runs"), _RUN_COLUMNS, "`spawnlog run list --requester`")


def _print_runs(heading: str, runs: object, columns: tuple[TableColumn, ...], further: str) -> None:
    if not isinstance(runs, list) or not runs:
        return
    print(f"\n{heading}:")
    shown = [run if isinstance(run, dict) else {"runId": run} for run in runs]
    print_table(shown[:_RUNS_SHOWN_MAX], columns)
    if len(runs) > _RUNS_SHOWN_MAX:
        print_note(f"there are more: see {further}")


_SHOWN_MAX = 20


def _writer(source: Mapping[str, Any]) -> str | None:
    """Return the author of a patch, or the run whose spawn brought the key."""
    run_id = source.get("runId")
    return source.get("by") or (f"run {short_id(run_id)}" if run_id else None)


_KEY_COLUMNS = (
    TableColumn("KEY", value_of("key")),
    TableColumn("VALUE", value_of("value"), folds=True),
    TableColumn("WRITTEN BY", value_of("writer")),
    TableColumn("POSITION", value_of("position"), right=True),
)
_HISTORY_COLUMNS = (
    TableColumn("POSITION", value_of("position"), right=True),
    TableColumn("TIME", lambda change: format_instant(change.get("recordedAt"))),
    TableColumn("CAUSE", value_of("cause")),
    TableColumn("WRITTEN BY", _writer),
    TableColumn("KEYS", lambda change: ", ".join(map(str, change.get("keys") or ())), folds=True),
)
_STARTED_COLUMNS = (
    TableColumn("RUN", lambda start: short_id(start.get("runId"))),
    TableColumn("VERSION", value_of("version"), right=True),
    TableColumn("POSITION", value_of("position"), right=True),
    TableColumn("LABEL", value_of("label"), elastic=True),
)


def print_shared_context(context: JsonObject) -> None:
    """Print the shared values with their authors, and the version that each run started with."""
    sources = _mapping(context.get("sources"))
    _print_section(
        "shared",
        [
            {
                "key": key,
                "value": json.dumps(value, ensure_ascii=False, separators=(",", ":")),
                "writer": _writer(_mapping(sources.get(key))),
                "position": _mapping(sources.get(key)).get("position"),
            }
            for key, value in _mapping(context.get("values")).items()
        ],
        _KEY_COLUMNS,
    )
    _print_section("last changes", context.get("history"), _HISTORY_COLUMNS, _SHOWN_MAX)
    _print_section("last started runs", context.get("startedWith"), _STARTED_COLUMNS, _SHOWN_MAX)


def _print_section(
    heading: str, items: object, columns: tuple[TableColumn, ...], most: int | None = None
) -> None:
    if not isinstance(items, list) or not items:
        return
    print(f"\n{heading}:")
    print_table([_mapping(item) for item in items][-most if most else 0 :], columns)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
