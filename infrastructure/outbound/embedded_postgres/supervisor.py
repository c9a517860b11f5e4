"""Supervisor: parent process of the server, running as long as the server has users.

It is a process of its own, so that it outlives the process that started it. It needs only the
standard library; `supervisor_process.py` starts it. It waits for the exclusive lock on the file
that every user of the server locks as shared. When it gets the lock, the last user is gone, in
whatever way, and it stops the server. While there are users, it restarts a killed server. If the
supervisor itself is killed, the system signals the server to stop.
"""

import os
import signal
import subprocess
import threading
import time
import traceback

from infrastructure.outbound.embedded_postgres import data_directory, install, process
from infrastructure.outbound.embedded_postgres.data_directory import PORT, Home
from infrastructure.outbound.embedded_postgres.errors import (
    EmbeddedPostgresError,
    from_os_error,
    from_output,
)
from infrastructure.outbound.embedded_postgres.install import Installation
from infrastructure.outbound.embedded_postgres.locks import FileLock
from infrastructure.outbound.embedded_postgres.process import BoundedLog
from infrastructure.outbound.embedded_postgres.supervisor_process import SupervisorArguments

_STEADY_SECONDS = 60.0
_FAILURES_MAX = 5
_PAUSE_SECONDS = 0.2
_ORPHAN_GRACE_SECONDS = 1.0
_FAST_STOP_SECONDS_MAX = 60.0

# Passed on the command line, so that the configuration file of the data cannot override them. They
# guarantee that acknowledged commits are on disk, only the owner connects, and the log quotes no
# statements.
_SETTINGS = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "listen_addresses": "",
    "port": str(PORT),
    "unix_socket_permissions": "0700",
    "cluster_name": "spawnlog",
    "logging_collector": "off",
    "log_destination": "stderr",
    "log_min_messages": "log",
    "log_min_error_statement": "panic",
    "log_checkpoints": "off",
    "log_timezone": "UTC",
    "timezone": "UTC",
}


def main(arguments_text: str) -> None:
    """Run a supervisor until its server has no users.

    The calling process exits at once, and the supervisor continues in a child of it. If the server
    cannot run, the reason is written to standard output, which closes when the supervisor ends.
    """
    if os.fork():
        os._exit(0)
    report = os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    os.umask(0o077)
    # A shell starts background programs with SIGINT ignored, and they pass that on. A server that
    # has just started would then ignore the SIGINT that stops it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    arguments = SupervisorArguments.read(arguments_text)
    home = Home(arguments.home)
    log = BoundedLog(home.log)
    reason = ""
    try:
        os.set_inheritable(arguments.lock, False)
        process.adopt_orphans()
        PostgresSupervisor(home, arguments, log).run()
    except EmbeddedPostgresError as error:
        reason = str(error)
    except OSError as error:
        reason = str(from_os_error(error, home.root))
    except Exception as error:
        log.write(traceback.format_exc().encode())
        reason = (
            f"the supervisor of the embedded PostgreSQL failed ({error!r}); its log is {home.log}"
        )
    if reason:
        log.write(f"supervisor: {reason}\n".encode("utf-8", "replace"))
        try:
            os.write(report, reason.encode("utf-8", "replace"))
        except OSError:
            os._exit(1)
    os._exit(1 if reason else 0)


class PostgresSupervisor:
    """Supervisor that starts the server, restarts it when it dies, and stops it when it has no
    users.
    """

    def __init__(self, home: Home, arguments: SupervisorArguments, log: BoundedLog) -> None:
        self._home = home
        self._arguments = arguments
        self._log = log
        self._turn = threading.Lock()
        self._server: subprocess.Popen[bytes] | None = None
        self._leaving = threading.Event()
        self._gone = threading.Event()

    def run(self) -> None:
        """Keep the server running until it is stopped.

        Raises:
            EmbeddedPostgresError: The server cannot run.
            OSError: The installation cannot be prepared.
        """
        installed = install.prepare_installation(
            self._home, self._arguments.directories, self._arguments.lock, self._log
        )
        threading.Thread(target=self._stop_when_unused, daemon=True).start()
        try:
            with (
                data_directory.open_directory_view(self._home.data, installed.by_path) as data,
                data_directory.open_directory_view(
                    self._home.sockets, installed.by_path
                ) as sockets,
            ):
                self._keep(installed, data, sockets)
        finally:
            installed.remove_what_lies_outside()

    def _keep(
        self,
        installed: Installation,
        data: data_directory.DirectoryView,
        sockets: data_directory.DirectoryView,
    ) -> None:
        failures = 0
        ran_before = False
        while True:
            began = time.monotonic()
            with self._turn:
                if self._leaving.is_set():
                    return
                data_directory.remove_stale_lock_file(self._home.data)
                server = self._start(installed, data, sockets)
            assert server.stdout is not None
            output = self._log.follow(server.stdout)
            status = server.wait()
            process.end_orphans(_ORPHAN_GRACE_SECONDS)
            if self._leaving.is_set():
                self._gone.set()
                output.output()
                return
            steady = time.monotonic() - began > _STEADY_SECONDS
            failures = 0 if steady else failures + 1
            refused = status > 0 and not ran_before and not steady
            if refused or failures > _FAILURES_MAX:
                text = output.output().replace(data.path, str(self._home.data))
                raise from_output("start", text, self._home.root, self._home.log)
            ran_before = True
            self._log.write(f"supervisor: the server ended with status {status}\n".encode())
            # Backoff before the restart, cut short when the last user leaves.
            self._leaving.wait(_PAUSE_SECONDS * (failures - 1))

    def _start(
        self,
        installed: Installation,
        data: data_directory.DirectoryView,
        sockets: data_directory.DirectoryView,
    ) -> subprocess.Popen[bytes]:
        settings = {**_SETTINGS, "unix_socket_directories": sockets.path}
        arguments = [part for setting in settings.items() for part in ("-c", "=".join(setting))]
        self._server = process.start_program(
            [str(installed.programs.directory / "postgres"), "-D", data.path, *arguments],
            installed.account,
            (*data.descriptors, *sockets.descriptors, self._arguments.lock),
            signal.SIGINT,
        )
        return self._server

    def _stop_when_unused(self) -> None:
        """Wait until the last user is gone, then stop the server while no process can start or join
        it.

        The users' lock is released before the start lock is requested, because a starting process
        holds the start lock while it waits for the users' lock.
        """
        users = FileLock(self._home.holders_lock)
        starting = FileLock(self._home.start_lock)
        while True:
            users.wait_exclusive()
            users.release()
            starting.wait_exclusive()
            if users.try_exclusive():
                break
            starting.release()
        with self._turn:
            self._leaving.set()
            server = self._server
        if server is not None:
            server.send_signal(signal.SIGINT)
            if not self._gone.wait(_FAST_STOP_SECONDS_MAX):
                server.send_signal(signal.SIGQUIT)
