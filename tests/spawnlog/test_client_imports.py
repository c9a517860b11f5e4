"""The client is a separate package: its imports and its public names."""

import re
import subprocess
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest

import spawnlog

PACKAGE = Path(spawnlog.__file__).parent

pytestmark = pytest.mark.process

DEPENDENCIES = ("httpx2", "pydantic")
ALONE = """
import sys
allowed = {"spawnlog", *sys.argv[1:], *sys.stdlib_module_names}

class NothingElse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in allowed and not name.startswith("_sysconfigdata"):
            raise ImportError(f"{name} is not installed with the client")

sys.meta_path.insert(0, NothingElse())
import pkgutil, importlib, spawnlog
for module in pkgutil.walk_packages(spawnlog.__path__, "spawnlog."):
    importlib.import_module(module.name)
from spawnlog import models
from spawnlog.core.answer import prepare
for name in vars(models):
    if name.endswith(("View", "Answer")):
        prepare((name,))
with spawnlog.Client("http://127.0.0.1:1", token="t") as client:
    print(client)
"""


def loaded(program: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{program}\nimport sys\nprint(*sys.modules)"],
        cwd=PACKAGE.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    return {name.partition(".")[0] for name in done.stdout.split()}


def normalized(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


def needed(distribution: str, found: set[str]) -> set[str]:
    """Return a distribution and all that is installed with it, without extras."""
    if normalized(distribution) not in found:
        found.add(normalized(distribution))
        with suppress(PackageNotFoundError):
            for require in requires(distribution) or ():
                if "extra ==" not in require:
                    needed(re.split(r"[^\w.-]", require, maxsplit=1)[0], found)
    return found


def test_the_package_alone_loads_nothing_heavy() -> None:
    heavy = {"httpx2", "pydantic", "fastapi", "psycopg", "uvicorn", "application", "domain"}
    assert not heavy & loaded("import spawnlog")


def test_every_module_loads_without_the_server() -> None:
    distributions = {name for dependency in DEPENDENCIES for name in needed(dependency, set())}
    modules = [
        module
        for module, names in packages_distributions().items()
        if distributions.intersection(map(normalized, names))
    ]
    done = subprocess.run(
        [sys.executable, "-c", ALONE, *modules],
        cwd=PACKAGE.parent,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, "Client('http://127.0.0.1:1')\n"), done.stderr


def test_every_public_name_is_there() -> None:
    assert [name for name in spawnlog.__all__ if not hasattr(spawnlog, name)] == []
    assert dir(spawnlog) == spawnlog.__all__
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        _ = spawnlog.nothing_of_the_kind
