"""Selection of a workspace's bootstrap files, cut to the prompt's limits."""

from collections.abc import Iterable
from dataclasses import dataclass

from domain.configuration.agents import BootstrapLimits
from domain.values.text import whole_characters

BOOTSTRAP_NAMES = ("AGENTS.md", "TOOLS.md")
"""The only files that are read, in prompt order."""


@dataclass(frozen=True, slots=True)
class BootstrapFile:
    """A bootstrap file of the child's workspace, as included in its system prompt."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class BootstrapSelection:
    """The files for the prompt, with warnings for the caller about files that were cut or
    omitted.
    """

    files: tuple[BootstrapFile, ...]
    warnings: tuple[str, ...]


def select_bootstrap_files(
    files: Iterable[BootstrapFile], limits: BootstrapLimits
) -> BootstrapSelection:
    """Select files in order, cutting each to the remaining limit.

    Blank files are omitted silently. If no room is left, a file is omitted with a warning.
    """
    selected: list[BootstrapFile] = []
    warnings: list[str] = []
    left = limits.total_chars_max
    for file in files:
        if not file.text.strip():
            continue
        room = min(limits.chars_max, left)
        key = "bootstrapMaxChars" if limits.chars_max <= left else "bootstrapTotalMaxChars"
        if room <= 0:
            warnings.append(_omitted_warning(file.name, limits.total_chars_max))
        elif len(file.text) <= room:
            selected.append(file)
            left -= len(file.text)
        else:
            selected.append(BootstrapFile(file.name, _cut_file(file, room)))
            warnings.append(_cut_warning(file.name, room, key))
            left -= room
    return BootstrapSelection(tuple(selected), tuple(warnings))


def unreadable_warning(name: str, why: str) -> str:
    """Return the caller's warning for a file that could not be used.

    Args:
        name: Name of the file.
        why: Reason, as a clause.
    """
    return (
        f"{name} of the child's workspace was left out: {why}."
        " Put a regular file of UTF-8 text in its place, or remove it."
    )


def _cut_file(file: BootstrapFile, room: int) -> str:
    text = file.text[: whole_characters(file.text, room)]
    return f"{text}\n\n[truncated: {file.name} exceeded {room} characters]"


_CUT = "of the child's workspace was truncated after"
_OMITTED = "of the child's workspace was left out: the file before it took all of the"


def is_about_limits(warning: str) -> bool:
    """Return True if the warning says that a limit cut or omitted a file."""
    return _CUT in warning or _OMITTED in warning


def _cut_warning(name: str, room: int, key: str) -> str:
    return f"{name} {_CUT} {room} characters ({key}). Shorten the file, or raise {key}."


def _omitted_warning(name: str, total: int) -> str:
    return (
        f"{name} {_OMITTED} {total} characters of bootstrapTotalMaxChars."
        " Shorten that file, or raise bootstrapTotalMaxChars."
    )
