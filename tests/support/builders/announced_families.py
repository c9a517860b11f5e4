"""Families of which everybody is done, and whose sessions so take messages."""

from typing import Any

from domain.run.facts import SpawnOptions
from tests.support.builders import run_commands as ask
from tests.support.builders.facts import fact_of
from tests.support.builders.family_log import FamilyLog


def announced(*names: str, **policy: Any) -> FamilyLog:
    """Each was spawned by the one before it, and all are over, the last one first."""
    log = FamilyLog(**policy)
    for by, name in zip(("main", *names), names, strict=False):
        log.begin(name, by)
    log.finish(*reversed(names))
    return log


def lasting(**options: Any) -> FamilyLog:
    """A session of mode `session`, `scout`, whose first run executes."""
    log = FamilyLog()
    mode = fact_of(SpawnOptions, {"mode": "session", **options})
    log.spawn("scout", thread=True, options=mode)
    log.create("scout")
    log.tell("scout", ask.claim())
    log.tell("scout", ask.start(log.run("scout").epoch))
    return log
