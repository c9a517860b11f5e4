"""The task with what context scripts put before and after it."""

from collections.abc import Sequence
from dataclasses import dataclass

from domain.prompt.pieces import PartedText, Piece, join_pieces, separate_pieces

TASK = "task"


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one context script adds to the task."""

    script_id: str
    text: str


def task_pieces(
    task: str, *, prepend: Sequence[Contribution] = (), append: Sequence[Contribution] = ()
) -> tuple[Piece, ...]:
    """The pieces of the message, blank lines between them: prepended, task, appended."""
    return separate_pieces(
        (
            *(_piece(contribution) for contribution in prepend),
            Piece(source=TASK, text=task),
            *(_piece(contribution) for contribution in append),
        )
    )


def task_message(
    task: str, *, prepend: Sequence[Contribution] = (), append: Sequence[Contribution] = ()
) -> PartedText:
    """The message itself, `<prepended>\\n\\n<task>\\n\\n<appended>`, and its parts."""
    return join_pieces("message", task_pieces(task, prepend=prepend, append=append))


def _piece(contribution: Contribution) -> Piece:
    return Piece(source=f"script:{contribution.script_id}", text=contribution.text)
