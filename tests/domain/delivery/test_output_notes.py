"""Notes on the output of a run."""

import pytest

from domain.delivery.output_notes import (
    OutputNote,
    announced_notes,
    note_body,
    read_notes,
    stderr_note,
    warning_note,
)

WARNING = OutputNote("warning", "warning: no jsonl")
STDERR = OutputNote("stderr", "standard error:\nmodel not found")


def test_note_is_read_back_from_its_body() -> None:
    assert read_notes([{"text": "said"}, note_body(WARNING), note_body(STDERR)]) == (
        WARNING,
        STDERR,
    )


def test_entry_after_note_hides_it() -> None:
    # A fork begins with the notes of another run.
    assert read_notes([note_body(STDERR), {"role": "user", "text": "Go."}]) == ()
    assert (
        read_notes([{"text": "x", "source": "elsewhere"}, {"text": "y", "source": ["stderr"]}])
        == ()
    )


def test_nothing_to_say_makes_no_note() -> None:
    assert warning_note([]) is None
    assert stderr_note("", is_cut=False) is None


@pytest.mark.parametrize(
    ("has_result", "has_error", "announced"),
    [
        (False, False, [WARNING.text, STDERR.text]),
        (True, False, [WARNING.text]),
        (False, True, [WARNING.text]),
    ],
)
def test_stderr_is_announced_without_result_and_error(
    has_result: bool, has_error: bool, announced: list[str]
) -> None:
    notes = [WARNING, STDERR]
    assert announced_notes(notes, has_result=has_result, has_error=has_error) == announced


def test_end_of_long_stderr_is_announced() -> None:
    note = stderr_note("x" * 8_000 + " model not found", is_cut=True)
    assert note is not None
    (announced,) = announced_notes([note], has_result=False, has_error=False)
    assert announced.startswith("standard error, the end of it: xxx")
    assert announced.endswith(" model not found")
    assert len(announced) < 1_000
