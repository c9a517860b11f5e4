"""Words for how a program ended."""

import signal as signals

NEVER_EXECUTED = "could not be executed: "


def was_executed(error: str) -> bool:
    """Whether the error of an exit came after the program had been executed."""
    return not error.startswith(NEVER_EXECUTED)


def signal_name(number: int) -> str:
    """`SIGSEGV`, or the number where it has no name."""
    try:
        return signals.Signals(number).name
    except ValueError:
        return str(number)
