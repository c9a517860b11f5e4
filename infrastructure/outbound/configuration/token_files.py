"""Checks of the tokens of a configuration file against this machine."""

import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from domain.configuration.problems import ConfigurationError, pointer_of
from domain.configuration.settings import Token, TokenSource
from domain.configuration.warnings import ConfigurationWarning

TOKEN_CHARACTERS_MIN = 16
_READABLE_BY_OTHERS = stat.S_IRGRP | stat.S_IROTH
_UNUSABLE = "{why}; the server refuses every request with this token"
_SHORT = (
    f"holds fewer than {TOKEN_CHARACTERS_MIN} characters and can be guessed; make one with"
    " openssl rand -hex 32"
)
_READABLE = "names a file that other users of this machine can read; chmod 600 it"


def token_findings(
    tokens: Sequence[Token],
    resolve: Callable[[TokenSource], str],
    place: Callable[[str], Path],
) -> Iterator[tuple[ConfigurationWarning, bool]]:
    """Check that each token can be read, is long enough, and is not readable by other users.

    Args:
        tokens: Tokens of the configuration.
        resolve: Returns the text of a token, or raises ConfigurationError.
        place: Returns the path for a text of the file, or raises ConfigurationError.

    Yields:
        Each finding, and True if it is an error. A missing or unusable file is an error. An unset
        environment variable is not: it may be set where the server runs.
    """
    for index, token in enumerate(tokens):
        source = token.token
        names_file = source.file is not None
        pointer = pointer_of(
            ("spawnlog", "tokens", index, "token", *(["file"] if names_file else []))
        )
        try:
            text = resolve(source)
        except ConfigurationError as error:
            yield ConfigurationWarning(pointer, _UNUSABLE.format(why=error)), names_file
            continue
        if not text.strip():
            yield ConfigurationWarning(pointer, _UNUSABLE.format(why="is empty")), names_file
        elif len(text) < TOKEN_CHARACTERS_MIN:
            yield ConfigurationWarning(pointer, _SHORT), False
        if source.file is not None and place(source.file).stat().st_mode & _READABLE_BY_OTHERS:
            yield ConfigurationWarning(pointer, _READABLE), False
