"""Lifecycle of a server process: start, signals, drain, end."""

import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import uvicorn

from application.log.envelope import Actor
from domain.configuration.configuration import Configuration
from domain.configuration.problems import ConfigurationError
from domain.configuration.settings import Settings
from domain.values.session_key import MAIN
from infrastructure.inbound.http.application import HttpApplication
from infrastructure.inbound.http.middleware.open_files import OpenFiles
from infrastructure.inbound.http.middleware.timed_connection import TimedConnection
from infrastructure.inbound.http.requests.services import Services
from infrastructure.inbound.web.pages import page_routes, routes_without_page
from infrastructure.outbound.configuration.load import LoadedConfiguration, load
from infrastructure.outbound.identity.data_directory import EnteredServer
from infrastructure.server.compose import ServerProcess
from infrastructure.server.database import name_unavailable_database

YOUNG_OBJECTS_MIN = 20_000
"""Growth in objects that starts a collection of the youngest generation."""


def tune_garbage_collector() -> None:
    """Exempt present objects from garbage collection, and collect less often.

    States and events hold no cycles. Scanning them repeatedly would take a quarter of the work of a
    busy server.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS_MIN, 20, 50)


HTTP_GRACE_SECONDS = 5
STOP_SECONDS_MAX = 15.0
START_SETTINGS = frozenset(
    {
        "allowed_hosts", "data_dir", "database_url", "drain_seconds", "host", "lease_seconds",
        "no_auth", "no_page", "port", "telemetry",
    }
)  # fmt: skip
"""Settings that are read at the start and not at a reload."""


_log = logging.getLogger("spawnlog")


class _UvicornServer(uvicorn.Server):
    """Uvicorn server that signals when it accepts requests, and installs no signal handlers."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.accepts = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing: the process has its own signal handlers."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the server and set `accepts`."""
        await super().startup(sockets)
        self.accepts.set()


async def run_server(process: ServerProcess, listening: socket.socket) -> int:
    """Serve until SIGTERM or SIGINT; a second signal ends the process at once.

    Returns:
        The exit status.
    """
    url = url_of(listening)
    stop_event = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _stop, stop_event)
    process.on_end = stop_event.set
    services = await _open_unless_stopped(process, url, stop_event)
    if services is None:
        return 0
    entry: EnteredServer | None = None
    try:
        loop.add_signal_handler(signal.SIGHUP, _reload, process)
        if process.settings.no_auth:
            _log.warning("authentication is off: every program on this machine has full access")
        settings = process.settings
        page = (
            routes_without_page()
            if settings.no_page
            else page_routes(wants_token=not settings.no_auth)
        )
        files = OpenFiles.of_process()
        application = HttpApplication(services, process.models, page, streams_max=files.streams_max)
        server = _UvicornServer(_uvicorn(application, files))
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        await _wait_for_first(server.accepts, serving)
        if serving.done():
            await serving
            return 2
        entry = process.directory.enter_server(url, process.log.log_id)
        tune_garbage_collector()
        print(f"spawnlog ready on {url}", flush=True)
        await _wait_for_first(stop_event, serving)
        _log.info("stopping")
        if len(process.directory.servers_of(process.log.log_id)) > 1:
            # Another server takes new work, which this one now refuses.
            entry.remove()
        _end_after(process.settings.drain_seconds + STOP_SECONDS_MAX)
        await process.drain()
        entry.remove()
        server.should_exit = True
        await serving
    finally:
        if entry is not None:
            entry.remove()
        _end_after(STOP_SECONDS_MAX)
        await process.close()
    return 0


async def _open_unless_stopped(
    process: ServerProcess, url: str, stop_event: asyncio.Event
) -> Services | None:
    """Return the services, or None if the server was stopped before they were ready.

    A start that rebuilds rows may take long.
    """
    opening = asyncio.create_task(process.open(url))
    waiting = asyncio.create_task(stop_event.wait())
    await asyncio.wait({opening, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if not opening.done():
        _log.info("stopping before the start is complete")
        opening.cancel()
        _end_after(STOP_SECONDS_MAX)
        with contextlib.suppress(asyncio.CancelledError):
            await opening
        return None
    with name_unavailable_database():
        return await opening


def _end_after(seconds: float) -> None:
    """End the process if it still runs after `seconds`, also while its last tasks are cancelled.

    A database that does not answer must not keep a stopping process alive, and a wait for it cannot
    be cancelled. Children end with the process. The next start recovers from the log.
    """
    asyncio.get_running_loop().call_later(seconds, _exit_at_once, seconds)


def _exit_at_once(seconds: float) -> None:
    _log.error("stopping takes more than %d seconds: the process exits now", seconds)
    os._exit(1)


async def _wait_for_first(event: asyncio.Event, serving: asyncio.Task[None]) -> None:
    """Wait for the event, or until the server ends."""
    waiting = asyncio.create_task(event.wait())
    await asyncio.wait({waiting, serving}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()


def url_of(listening: socket.socket) -> str:
    """Return the URL at which the socket can be reached from this machine."""
    host, port = listening.getsockname()[:2]
    if host in ("0.0.0.0", "::"):  # noqa: S104
        host = "127.0.0.1" if host == "0.0.0.0" else "::1"  # noqa: S104
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _uvicorn(application: object, files: OpenFiles) -> uvicorn.Config:
    return uvicorn.Config(
        application,  # type: ignore[arg-type]
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        date_header=True,
        proxy_headers=False,
        timeout_graceful_shutdown=HTTP_GRACE_SECONDS,
        timeout_keep_alive=30,
        h11_max_incomplete_event_size=65536,
        http=partial(TimedConnection, files=files),  # type: ignore[arg-type]
        ws="none",
    )


def _stop(stop_event: asyncio.Event) -> None:
    if stop_event.is_set():
        # A second signal means now. Children end with their liveness pipes.
        os._exit(130)
    stop_event.set()


_reloads: set["asyncio.Task[None]"] = set()


def _reload(process: ServerProcess) -> None:
    task = asyncio.create_task(
        _find_file_again(process)
        if process.config is None
        else _reload_now(process, process.config)
    )
    _reloads.add(task)
    task.add_done_callback(_reloads.discard)


async def _find_file_again(process: ServerProcess) -> None:
    """Read the secrets of the active revision again. Without a file nothing is activated."""
    try:
        revision = await process.configurations.find_file_again()
    except Exception:
        _log.exception("the configuration file could not be reloaded")
    else:
        _log.info("without --config configuration revision %d stays in force", revision)


async def _reload_now(process: ServerProcess, config: Path) -> None:
    """Reload the configuration. One with an error changes nothing."""
    before = process.configurations.current().configuration
    try:
        loaded = await asyncio.to_thread(load, config)
        revision = await process.configurations.activate(loaded, Actor(kind="system"))
    except ConfigurationError as error:
        _log.error("the configuration is not changed: %s", error)
    except Exception:
        _log.exception("the configuration is not changed")
    else:
        try:
            _log_reload(loaded, before, process.settings)
        except Exception:
            _log.exception("the changes to the configuration could not be logged")
        _log.info("configuration revision %d is active", revision)


def _log_reload(loaded: LoadedConfiguration, before: Configuration, settings: Settings) -> None:
    warn_about(loaded)
    changed = settings_needing_restart(settings, before.spawnlog, loaded.configuration.spawnlog)
    if changed:
        _log.warning("a restart is needed for %s", ", ".join(changed))
    moved = main_key_warning(before, loaded.configuration)
    if moved is not None:
        _log.warning("%s", moved)


def warn_about(loaded: LoadedConfiguration) -> None:
    """Log the warnings of a configuration, and errors that affect only a part of it."""
    for warning in (*loaded.errors, *loaded.warnings):
        _log.warning("%s", warning)


def main_key_warning(before: Configuration, after: Configuration) -> str | None:
    """Return a warning if `main` now means another session, else None.

    It is determined by `session.mainKey`, `session.scope` and the default agent.
    """
    old, new = before.canonical_key(MAIN), after.canonical_key(MAIN)
    if old == new:
        return None
    return (
        f"main was session {old} and is now {new}, because session.mainKey, session.scope or the"
        " default agent changed; children, caps and inbox of the old session stay with it"
    )


def settings_needing_restart(
    running: Settings, before: Settings, after: Settings
) -> tuple[str, ...]:
    """Return changed settings that a running server cannot apply, by their names in the file.

    Args:
        running: The settings of the server, with those of its command line and environment.
        before: The settings of the file until now.
        after: The settings of the file from now on.
    """
    changed = [
        name
        for name in sorted(START_SETTINGS)
        if getattr(after, name) not in (getattr(before, name), getattr(running, name))
    ]
    return tuple(Settings.model_fields[name].alias or name for name in changed)
