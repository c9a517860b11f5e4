"""The shared parts of the page on a page of their own, served with the policy of the real one."""

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import build_page
from infrastructure.inbound.web.policy import DOCUMENT_HEADERS
from tests.support.servers.preloaded import ROOT

SOURCE = ROOT / "tests" / "support" / "page" / "workshop_source"
BUILD_SECONDS_MAX = 120


class _Files(SimpleHTTPRequestHandler):
    """Files of the built workshop. Every address of a view leads to its document."""

    def end_headers(self) -> None:
        for name, value in DOCUMENT_HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def translate_path(self, path: str) -> str:
        place = path.partition("?")[0].removeprefix("/ui/")
        name = place if place.startswith("assets/") else "index.html"
        return str(Path(self.directory) / name)

    def log_message(self, format: str, *args: object) -> None:
        pass


def build(folder: Path) -> Path:
    """Build the workshop in a folder. Return the folder of the files to serve."""
    packages = build_page.PAGE / "node_modules"
    assert packages.is_dir(), "the packages of the page are missing: `make page` installs them"
    shutil.copytree(build_page.SOURCE, folder, dirs_exist_ok=True)
    shutil.copytree(SOURCE, folder / "workshop")
    (folder / "workshop" / "index.html").rename(folder / "index.html")
    (folder / "node_modules").symlink_to(packages)
    built = subprocess.run(
        build_page.node("node_modules/vite/bin/vite.js", "build", "--logLevel", "warn"),
        cwd=folder,
        env={**build_page.node_environment(), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS_MAX,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return folder / "dist"


@contextmanager
def workshop(folder: Path) -> Iterator[str]:
    """Serve the workshop. Yield its origin."""
    files = build(folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Files, directory=str(files))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
