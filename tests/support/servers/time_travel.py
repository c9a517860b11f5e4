"""The document about time travel: its commands, and a server with its examples and files."""

import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.servers.data_directories import copied, new_place
from tests.support.servers.preloaded import ROOT
from tests.support.servers.server import Server

DOCUMENT = (ROOT / "docs" / "time-travel.md").read_text("utf-8")


def commands(part: str = DOCUMENT) -> list[list[str]]:
    """Return the commands of the document or of a part of it, in order, split as by a shell."""
    return [shlex.split(line)[1:] for line in re.findall(r"^\$ (spawnlog .+)$", part, re.M)]


def commands_that_record() -> list[list[str]]:
    """Return the commands at the page's beginning, which record the runs that later ones read."""
    return commands(DOCUMENT.partition("## Moments")[0])


def status_of_recording(words: list[str]) -> int:
    """Return the documented exit status of one of them: the sixth child is refused."""
    return 3 if words[1:2] == ["Sleep for 1 second"] else 0


@contextmanager
def server_of_examples(made: Path) -> Iterator[Server]:
    """Yield the server, on a copy of an unused data directory."""
    with new_place() as place:
        examples = Path(shutil.copytree(ROOT / "examples", place / "examples"))
        (block,) = re.findall(r"^```json\n(.*?)^```$", DOCUMENT, re.M | re.S)
        (place / "patch.json").write_text(block, "utf-8")
        shutil.copy(examples / "spawnlog.json5", place / "new.json5")
        data = copied(made, place / "data")
        with Server(data, examples / "spawnlog.json5") as running:
            yield running
