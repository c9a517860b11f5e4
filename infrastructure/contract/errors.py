"""Failures that a person can mend."""


class UserError(Exception):
    """Something the user of a command must change; the message says what, in their words."""


class NameUnknown(UserError):
    """Nothing has the name that was given."""


class FileFault(ValueError):
    """The first thing that is wrong with a file: its line, from 1, and its position, if it is that
    of an event."""

    def __init__(self, line: int, text: str, position: int | None = None) -> None:
        where = f"line {line}" if position is None else f"line {line}, position {position}"
        super().__init__(f"{where}: {text}")
        self.line = line
        self.text = text
        self.position = position
