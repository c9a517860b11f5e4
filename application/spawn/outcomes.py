"""Outcomes of a preparation."""

from dataclasses import dataclass

from application.log.answers import AcceptedRun
from application.steps.preparation import Preparation, Refused
from domain.run.commands import CreateSession
from domain.run.state import Run


@dataclass(frozen=True, slots=True)
class Ready:
    """A child whose preparation is complete.

    `create` is recorded after the commands that its preparation still has to record; `response` is
    then returned to the caller.
    """

    preparation: Preparation
    create: CreateSession
    response: AcceptedRun


Outcome = Ready | Refused


@dataclass(frozen=True, slots=True)
class DecidedSpawn:
    """The runs of a spawn in their order: in their lanes, or refused.

    `position` is the position of the append that decided them; None if another process decided.
    """

    runs: tuple[Run, ...]
    position: int | None
