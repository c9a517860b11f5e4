"""The command `spawnlog` for shells and user programs, forked from the preloaded process.

The README's tour starts it sixty times, and each start imports for 0.3 s of processor time. `make
test-all` starts the installed command.
"""

import os
import select
import shutil
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson

from tests.support.servers.preloaded import REQUEST_BYTES_MAX, STATUS_BYTES, preloader
from tests.support.tiers import share

_COMMAND = """#!{python} -IS
import json, os, signal, socket, sys
link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
link.connect({address!r})
mask = os.umask(0)
os.umask(mask)
request = dict(argv=sys.argv[1:], environment=dict(os.environ), folder=os.getcwd(), umask=mask)
socket.send_fds(link, [json.dumps(request).encode()], [0, 1, 2])
pid = int(link.recv(16))
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, _: os.kill(pid, number))
code = int(link.recv(16))
if code < 0:
    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
sys.exit(code)
"""


@contextmanager
def command_folder() -> Iterator[Path]:
    """Yield the `bin` folder of a virtual environment like the one of the tests. Under the profile
    `all` it is that one."""
    installed = Path(sys.executable).parent
    if share() >= 1:
        yield installed
        return
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with TemporaryDirectory(prefix="spawnlog-") as name, closing(listener):
        place = Path(name)
        own = place / "bin"
        own.mkdir()
        (own / "python").symlink_to(sys.executable)
        (place / "lib").symlink_to(installed.parent / "lib")
        shutil.copy(installed.parent / "pyvenv.cfg", place)
        address = str(place / "commands")
        listener.bind(address)
        listener.listen(16)
        (own / "spawnlog").write_text(_COMMAND.format(python=sys.executable, address=address))
        (own / "spawnlog").chmod(0o755)
        acceptor = threading.Thread(target=_accept, args=[listener])
        acceptor.start()
        try:
            yield own
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            acceptor.join()


def _accept(listener: socket.socket) -> None:
    while True:
        try:
            link, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_run, args=[link]).start()


def _run(link: socket.socket) -> None:
    """Run one command. It ends with the program that asked for it."""
    with link:
        message, streams, _, _ = socket.recv_fds(link, REQUEST_BYTES_MAX, 3)
        pid, status = preloader().fork(orjson.loads(message), streams)
        for stream in streams:
            os.close(stream)
        link.send(str(pid).encode())
        ready, _, _ = select.select([status, link.fileno()], [], [])
        if status in ready:
            link.send(os.read(status, STATUS_BYTES))
        else:
            os.kill(pid, signal.SIGKILL)
        os.close(status)
