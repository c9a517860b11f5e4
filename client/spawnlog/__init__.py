"""Python client of spawnlog: `Client` is blocking, `AsyncClient` is for asyncio.

Both have one method for each operation of the server, and the same helpers: `session` to spawn runs
and wait for their results, `follow_events` for the live stream. Errors derive from `SpawnlogError`.
Modules are loaded at the first use of a name, so `import spawnlog` is cheap.

Example:
    from spawnlog import Client

    with Client() as client:
        run = client.session("agent:main:main").spawn("Summarize the report")
        print(run.result(seconds=60))
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spawnlog.async_client import AsyncClient
    from spawnlog.async_family import AsyncFamily, AsyncFollowedEvents, AsyncSpawnedRun
    from spawnlog.client import Client
    from spawnlog.core.answer import ServerAnswer
    from spawnlog.core.errors import (
        Fault,
        InvalidSettingError,
        NotFoundError,
        PermissionDeniedError,
        Problem,
        RunFailedError,
        ServerUnreachableError,
        SpawnlogError,
        SpawnRefusedError,
        StreamInterruptedError,
        UnexpectedResponseError,
        WaitTimeoutError,
    )
    from spawnlog.core.retries import RetryLimits
    from spawnlog.family import Family, FollowedEvents, SpawnedRun

_MODULES = {
    "AsyncClient": "async_client",
    "AsyncFamily": "async_family",
    "AsyncFollowedEvents": "async_family",
    "AsyncSpawnedRun": "async_family",
    "Client": "client",
    "Family": "family",
    "Fault": "core.errors",
    "FollowedEvents": "family",
    "UnexpectedResponseError": "core.errors",
    "InvalidSettingError": "core.errors",
    "NotFoundError": "core.errors",
    "PermissionDeniedError": "core.errors",
    "Problem": "core.errors",
    "SpawnRefusedError": "core.errors",
    "RetryLimits": "core.retries",
    "ServerAnswer": "core.answer",
    "ServerUnreachableError": "core.errors",
    "SpawnedRun": "family",
    "SpawnlogError": "core.errors",
    "StreamInterruptedError": "core.errors",
    "RunFailedError": "core.errors",
    "WaitTimeoutError": "core.errors",
}

__all__ = [
    "AsyncClient",
    "AsyncFamily",
    "AsyncFollowedEvents",
    "AsyncSpawnedRun",
    "Client",
    "Family",
    "Fault",
    "FollowedEvents",
    "InvalidSettingError",
    "NotFoundError",
    "PermissionDeniedError",
    "Problem",
    "RetryLimits",
    "RunFailedError",
    "ServerAnswer",
    "ServerUnreachableError",
    "SpawnRefusedError",
    "SpawnedRun",
    "SpawnlogError",
    "StreamInterruptedError",
    "UnexpectedResponseError",
    "WaitTimeoutError",
]


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)


def __dir__() -> list[str]:
    return __all__
