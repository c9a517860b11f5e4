"""Rules by which the server finds the programs that a configuration names."""

import os
import shutil
from collections.abc import Mapping


def expand_home(path: str, server: Mapping[str, str]) -> str:
    """Replace a leading `~` or `~/` by the server's home directory."""
    if path != "~" and not path.startswith("~/"):
        return path
    return (server.get("HOME") or os.path.expanduser("~")) + path[1:]


def why_not_executable(path: str, shown: str) -> str | None:
    """Return why the file at `path` cannot be executed; None if nothing is known against it.

    Args:
        path: Absolute path.
        shown: Path in the message, without values of variables.
    """
    if os.path.isdir(path):
        return f"is a directory: {shown}; name the file in it"
    if not os.path.exists(path):
        return f"not found: {shown}"
    if not os.access(path, os.X_OK):
        return f"is not executable: {shown}; make it executable with chmod +x"
    return None


def why_no_command(program: str, environment: Mapping[str, str]) -> str | None:
    """Return the reason why the program of a command cannot be executed; None if there is none.

    A path relative to the workspace cannot be checked: each run has its own workspace.
    """
    if os.path.isabs(program):
        return why_not_executable(program, program)
    if os.sep in program or shutil.which(program, path=environment.get("PATH", os.defpath)):
        return None
    return f"not found in PATH: {program}"
