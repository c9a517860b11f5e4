"""What comes of a preparation."""

from dataclasses import dataclass

from domain.run.state import Run


@dataclass(frozen=True, slots=True)
class PreparedRun:
    """A run that is in its lane or refused, and the position of the append that brought it there;
    None when others did."""

    run: Run
    position: int | None
