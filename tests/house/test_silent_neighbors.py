"""No call of a port waits without a limit for a silent neighbor.

The ports to the database are all called over a dead line. For each other port, the test named here
has a silent neighbor.
"""

import asyncio
import importlib
import inspect
import pkgutil
import types
import typing
from collections.abc import AsyncIterator
from collections.abc import Callable as CallableType
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args, get_origin
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from application import ports
from application.coordination.coordination import Coordination
from application.log.event_log import EventLog, LogUnavailableError
from application.log.texts import Contents
from infrastructure.outbound.identity.page_tokens import PostgresPageTokens
from infrastructure.outbound.log.postgres_log import PostgresLog
from infrastructure.outbound.log.read.state_cache import StateCaches
from infrastructure.outbound.log.schema.connections import LIMITS, LogConnection, open_pool
from infrastructure.outbound.log.verify.service import ServedVerifications
from infrastructure.outbound.read_model.contents import PostgresContents
from infrastructure.outbound.read_model.coordination import PostgresCoordination
from infrastructure.outbound.read_model.event_counts import PostgresEventCounts
from infrastructure.outbound.read_model.open_work import PostgresOpenWork
from infrastructure.outbound.read_model.registry import PostgresRegistry
from infrastructure.outbound.read_model.run_bars import PostgresRunBars
from infrastructure.outbound.read_model.run_search import PostgresRunSearch
from infrastructure.outbound.read_model.staged_files import PostgresStagedFiles
from infrastructure.outbound.transcripts.transcripts import StoredTranscripts
from infrastructure.server.database import check_alive
from tests.support.faults.silent_line import silent_line

ROOT = Path(__file__).parents[2]
ANSWER_SECONDS_MAX = 0.5
ENDED_SECONDS_MAX = 20.0

ELSEWHERE = {
    "AgentRuntimes": "test_hanging_child_is_killed_with_its_daemon",
    "RuntimeSession": "test_silent_endpoint_is_given_up",
    "HookClient": "test_slow_hook_is_not_waited_for",
    "WebhookClient": "test_webhook_with_slow_body_is_not_waited_for",
    "ScriptRunner": "test_hanging_script_is_ended_in_time",
}
THIS_MACHINE = {
    "AttachmentFiles",
    "BootstrapFiles",
    "Configurations",
    "Credentials",
    "EntryFlushes",
    "SpanReceiver",
    "WorkspaceFolders",
}
WITHOUT_DATABASE = {
    "Transcripts.drop_fork_snapshot",
    "Transcripts.grown",
    "Transcripts.write_files",
}
"""Calls that need no database, at least for a run without output."""
CALLED_AS: dict[str, type] = {"PageTokens": PostgresPageTokens}
"""Ports of which only a part is in the database."""


def protocols() -> dict[str, type]:
    modules = [importlib.import_module(f"application.ports.{module.name}") for module in _modules()]
    found: dict[str, type] = {
        "Coordination": Coordination,
        "EventLog": EventLog,
        "Contents": Contents,
    }
    for module in modules:
        for name, kind in vars(module).items():
            is_own = getattr(kind, "__module__", "") == module.__name__
            if is_own and getattr(kind, "_is_protocol", False):
                found[name] = kind
    return found


def _modules() -> list[pkgutil.ModuleInfo]:
    return list(pkgutil.iter_modules(ports.__path__))


def calls(protocol: type) -> list[str]:
    """Return the asynchronous methods of a port."""
    return [
        name
        for name, method in inspect.getmembers(protocol, inspect.iscoroutinefunction)
        if not name.startswith("_")
    ]


def made(kind: Any) -> Any:
    """Return some value of a type."""
    origin, arguments = get_origin(kind), get_args(kind)
    plain = {UUID: uuid7(), str: "a", int: 1, float: 0.1, bool: True, bytes: b"a"}
    if kind in plain:
        return plain[kind]
    if kind is datetime:
        return datetime.now(UTC)
    if kind is Any or kind is None or kind is type(None):
        return None
    if origin is Literal:
        return arguments[0]
    if isinstance(kind, typing.TypeVar):
        return None
    if origin in (typing.Union, types.UnionType):
        return made(next((argument for argument in arguments if argument is not type(None)), None))
    if origin is CallableType:
        return lambda *_: None
    if origin is tuple:
        return tuple(made(argument) for argument in arguments if argument is not Ellipsis)
    if origin is not None and issubclass(origin, typing.Mapping):
        return {made(arguments[0]): made(arguments[1])}
    if origin is not None and arguments:
        return origin_of(origin)([made(arguments[0])])
    return constructed(kind)


def origin_of(origin: Any) -> Any:
    return frozenset if issubclass(origin, typing.AbstractSet) else list


def constructed(kind: Any) -> Any:
    """Return an object with its required fields."""
    hints = typing.get_type_hints(kind)
    needed = [
        name
        for name, parameter in inspect.signature(kind).parameters.items()
        if parameter.default is inspect.Parameter.empty
    ]
    return kind(**{name: made(hints[name]) for name in needed})


def arguments_of(method: Any) -> tuple[list[Any], dict[str, Any]]:
    hints = typing.get_type_hints(method)
    positional, named = [], {}
    for name, parameter in list(inspect.signature(method).parameters.items())[1:]:
        if parameter.default is not inspect.Parameter.empty:
            continue
        value = made(hints[name])
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            named[name] = value
        else:
            positional.append(value)
    return positional, named


@pytest.fixture
async def over_dead_line(database_url: str, tmp_path: Path) -> AsyncIterator[dict[str, Any]]:
    """Yield the ports to a database that has stopped answering."""

    async def connect() -> LogConnection:
        raise AssertionError("a log that is not started connects nowhere")

    async with silent_line(database_url) as line:
        pool = await open_pool(
            line.url,
            application="test",
            least=4,
            most=4,
            wait_seconds=ANSWER_SECONDS_MAX,
            settings=LIMITS,
            answer_seconds_max=ANSWER_SECONDS_MAX,
            check=check_alive,
        )
        remembered = StateCaches()
        line.fall_silent(takes_new=False)
        try:
            yield {
                "Contents": PostgresContents(pool),
                "Coordination": PostgresCoordination(pool),
                "EventCounts": PostgresEventCounts(pool),
                "EventLog": PostgresLog(
                    connect, pool, log_id=uuid7(), schema="public", new_id=uuid7
                ),
                "LogVerifications": ServedVerifications(
                    pool, lambda: line.url, tmp_path / "state.json"
                ),
                "OpenWork": PostgresOpenWork(pool),
                "PageTokens": PostgresPageTokens(pool),
                "Registry": PostgresRegistry(pool, remembered),
                "RunBars": PostgresRunBars(pool, remembered),
                "RunSearch": PostgresRunSearch(pool, remembered),
                "StagedFiles": PostgresStagedFiles(pool),
                "Transcripts": StoredTranscripts(pool, tmp_path),
            }
        finally:
            line.takes_new = True
            await pool.close()


async def test_port_to_silent_database_ends_within_limit(over_dead_line: dict[str, Any]) -> None:
    request: dict[str, asyncio.Task[Any]] = {}
    for name, port in over_dead_line.items():
        kind = CALLED_AS.get(name, protocols()[name])
        for call in calls(kind):
            if f"{name}.{call}" == "EventLog.submit":
                # Shown by `test_silent_lines`, with a writer that has a connection.
                continue
            positional, named = arguments_of(getattr(kind, call))
            waited = getattr(port, call)(*positional, **named)
            request[f"{name}.{call}"] = asyncio.create_task(waited)
    _, silent = await asyncio.wait(request.values(), timeout=ENDED_SECONDS_MAX)
    assert not silent, [test_name for test_name, task in request.items() if task in silent]
    failures = {name: task.exception() for name, task in request.items()}
    wrong = {name: why for name, why in failures.items() if not _is_away(name, why)}
    assert not wrong


def _is_away(name: str, why: BaseException | None) -> bool:
    return isinstance(why, LogUnavailableError) or (why is None and name in WITHOUT_DATABASE)


def test_each_port_is_shown_with_silent_neighbor(over_dead_line: dict[str, Any]) -> None:
    waiting = {name for name, protocol in protocols().items() if calls(protocol)}
    assert waiting == over_dead_line.keys() | ELSEWHERE.keys() | THIS_MACHINE
    written = "".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    assert [item for item in ELSEWHERE.values() if f"def {item}(" not in written] == []
