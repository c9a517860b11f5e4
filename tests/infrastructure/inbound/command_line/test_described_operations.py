"""The command line's description of the operations: it is current, and complete."""

from tests.support.command_line.describe import DESCRIPTION, description


def test_description_is_current() -> None:
    assert DESCRIPTION.read_text("utf-8") == description(), "write it anew: make docs"
