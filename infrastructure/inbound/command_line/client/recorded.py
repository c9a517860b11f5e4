"""Plain data about the commands, written by `make docs`."""

import json
from functools import cache
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parents[1]
OPERATIONS = _FOLDER / "operations.json"
"""Operations, and the commands derived from them."""
HELP = _FOLDER / "help.json"
"""First paragraph of the help of each command that has a function."""


@cache
def recorded(file: Path) -> Any:
    """Return the content of one of these files. Callers must not modify it."""
    return json.loads(file.read_bytes())
