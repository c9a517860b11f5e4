"""What comes of a preparation."""

from dataclasses import dataclass

from application.log.answers import AcceptedRun
from application.steps.preparation import Preparation, Refused
from domain.run.commands import CreateSession
from domain.run.state import Run


@dataclass(frozen=True, slots=True)
class Ready:
    """All that a child needs is made: `create` is to be recorded behind what its preparation has
    to record before, and `response` is what the caller is told of the child then."""

    preparation: Preparation
    create: CreateSession
    response: AcceptedRun


Outcome = Ready | Refused


@dataclass(frozen=True, slots=True)
class DecidedSpawn:
    """The runs of a spawn as they are then, in their order: in their lanes, or refused. `position`
    is that of the append that decided about them; None when others did."""

    runs: tuple[Run, ...]
    position: int | None
