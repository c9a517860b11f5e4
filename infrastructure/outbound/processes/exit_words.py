"""Words for how a program ended."""

import signal as signals

NEVER_EXECUTED = "could not be executed: "
HOLDER_FELL_SILENT = "its holder fell silent: "


def was_executed(error: str) -> bool:
    """Whether the error of an exit came after the program had been executed."""
    return not error.startswith(NEVER_EXECUTED)


def holder_fell_silent(error: str | None) -> bool:
    """Whether the error of an exit says that the program was killed because its holder had shown
    no sign of life, and not because anybody wanted it to end."""
    return error is not None and error.startswith(HOLDER_FELL_SILENT)


def signal_name(number: int) -> str:
    """`SIGSEGV`, or the number where it has no name."""
    try:
        return signals.Signals(number).name
    except ValueError:
        return str(number)
