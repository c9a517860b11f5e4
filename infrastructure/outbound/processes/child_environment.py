"""What a program that works for us sees of the server: four variables, and what `~` means."""

import os
from collections.abc import Mapping

PASSED_VARIABLES = ("PATH", "HOME", "LANG", "TMPDIR")


def minimal_environment(server: Mapping[str, str]) -> dict[str, str]:
    """The variables of the server's environment that every program gets, where they are set."""
    return {name: server[name] for name in PASSED_VARIABLES if name in server}


def expand_home(path: str, server: Mapping[str, str]) -> str:
    """The path with a leading `~` or `~/` replaced by the server's home directory."""
    if path != "~" and not path.startswith("~/"):
        return path
    return (server.get("HOME") or os.path.expanduser("~")) + path[1:]
