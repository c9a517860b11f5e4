"""Plain data about the commands, which `make docs` writes."""

import json
from functools import cache
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parents[1]
OPERATIONS = _FOLDER / "operations.json"
"""Operations, and the commands that derive from them."""
HELP = _FOLDER / "help.json"
"""The first sentence of the help of each function that runs a command."""


@cache
def recorded(file: Path) -> Any:
    """Return the content of one of these files. The caller changes nothing of it."""
    return json.loads(file.read_bytes())
