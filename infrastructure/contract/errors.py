"""Errors that a person can correct."""


class UserError(Exception):
    """Error that the user of a command can correct. The message says how."""


class UnknownNameError(UserError):
    """Nothing has the given name."""


class FileContentError(ValueError):
    """The first fault in a file: its line, from 1, and its position if the line is an event."""

    def __init__(self, line: int, text: str, position: int | None = None) -> None:
        where = f"line {line}" if position is None else f"line {line}, position {position}"
        super().__init__(f"{where}: {text}")
        self.line = line
        self.text = text
        self.position = position
