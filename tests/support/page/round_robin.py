"""One address for several servers; each connection goes to the next one."""

import contextlib
import itertools
import socket
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

PIECE_BYTES = 65_536


class RoundRobin:
    """Relay of connections, byte by byte. Without servers it refuses them."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self._places: list[tuple[str, int]] = []
        self._turn = itertools.count()
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self.connections: dict[tuple[str, int], int] = {}

    def lead_to(self, *urls: str) -> None:
        """Lead connections to these servers from now on; cut the open ones."""
        parts = [urlsplit(url) for url in urls]
        with self._lock:
            self._places = [(part.hostname or "", part.port or 80) for part in parts]
            left, self._open = self._open, set()
        for item in left:
            with contextlib.suppress(OSError):
                item.shutdown(socket.SHUT_RDWR)

    def serve(self) -> None:
        """Serve until it is closed."""
        while True:
            try:
                came, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._pass_on, args=(came,), daemon=True).start()

    def close(self) -> None:
        """Accept no more connections."""
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.lead_to()

    def _pass_on(self, came: socket.socket) -> None:
        with self._lock:
            places = self._places
        with came:
            if not places:
                return
            place = places[next(self._turn) % len(places)]
            try:
                server = socket.create_connection(place, timeout=5)
            except OSError:
                return
            server.settimeout(None)
            with server:
                with self._lock:
                    if places is not self._places:
                        return
                    self._open |= {came, server}
                    self.connections[place] = self.connections.get(place, 0) + 1
                back = threading.Thread(target=_copy, args=(server, came), daemon=True)
                back.start()
                _copy(came, server)
                back.join()
                with self._lock:
                    self._open -= {came, server}


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while piece := source.recv(PIECE_BYTES):
            target.sendall(piece)
    for item in (source, target):
        with contextlib.suppress(OSError):
            item.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def round_robin(*urls: str) -> Iterator[RoundRobin]:
    """Yield an address for these servers during the block."""
    between = RoundRobin()
    between.lead_to(*urls)
    thread = threading.Thread(target=between.serve)
    thread.start()
    try:
        yield between
    finally:
        between.close()
        thread.join(5)
