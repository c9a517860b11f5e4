"""A configuration file to a document, or the reasons why not."""

import stat
from pathlib import Path

from domain.configuration.problems import ConfigurationError, ConfigurationProblem
from infrastructure.outbound.configuration.json5 import Document, Json5Error, read_json5

FILE_BYTES_MAX = 512 * 1024


def read_file(path: Path) -> Document:
    """The document in a file of at most 512 KiB; ConfigurationError names the file as given."""
    source = str(path)
    try:
        # Asked before opening: opening a pipe would wait for whoever writes to it.
        if not stat.S_ISREG(path.stat().st_mode):
            raise ConfigurationError([ConfigurationProblem("is not a regular file", source=source)])
        with path.open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
    except FileNotFoundError:
        message = "there is no such file; name another with --config, or none for the built-in"
        raise ConfigurationError([ConfigurationProblem(message, source=source)]) from None
    except (OSError, ValueError) as failure:
        reason = failure.strerror if isinstance(failure, OSError) else "not a valid path"
        message = f"cannot be read: {reason}"
        raise ConfigurationError([ConfigurationProblem(message, source=source)]) from None
    if len(content) > FILE_BYTES_MAX:
        message = f"is larger than {FILE_BYTES_MAX // 1024} KiB"
        raise ConfigurationError([ConfigurationProblem(message, source=source)])
    try:
        return read_text(content.decode("utf-8"), source)
    except UnicodeDecodeError as failure:
        line = content.count(b"\n", 0, failure.start) + 1
        problem = ConfigurationProblem("is not UTF-8; save it as UTF-8", source=source, line=line)
        raise ConfigurationError([problem]) from None


def read_text(text: str, source: str) -> Document:
    """The document in a text; `source` is how problems name it. Raises ConfigurationError."""
    try:
        size_bytes = len(text.encode())
    except UnicodeEncodeError as failure:
        line, column = _place(text, failure.start)
        problem = ConfigurationProblem(
            "contains half of a surrogate pair", source, "", line, column
        )
        raise ConfigurationError([problem]) from None
    if size_bytes > FILE_BYTES_MAX:
        problem = ConfigurationProblem(
            f"is larger than {FILE_BYTES_MAX // 1024} KiB", source=source
        )
        raise ConfigurationError([problem])
    if "\0" in text:
        line, column = _place(text, text.index("\0"))
        problem = ConfigurationProblem("contains NUL", source=source, line=line, column=column)
        raise ConfigurationError([problem])
    try:
        document = read_json5(text)
    except Json5Error as failure:
        line, column = _place(text, failure.offset)
        problem = ConfigurationProblem(failure.message, source, failure.pointer, line, column)
        raise ConfigurationError([problem]) from None
    if document.repeated:
        raise ConfigurationError(_repeated_key_problems(document, source))
    return document


def _repeated_key_problems(document: Document, source: str) -> list[ConfigurationProblem]:
    problems = []
    for pointer, offset in document.repeated:
        line, column = document.line_and_column(offset)
        problems.append(
            ConfigurationProblem("this key stands twice", source, pointer, line, column)
        )
    return problems


def _place(text: str, offset: int) -> tuple[int, int]:
    return Document(None, {}, (), text).line_and_column(offset)
