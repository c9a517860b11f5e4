"""What happened to a family, from the first request to the archive."""

from tests.support import run_commands as ask
from tests.support.family_log import FamilyLog, Recorded


def a_family() -> list[Recorded]:
    """An orchestrator and those below it: refused, stopped, announced, acknowledged, archived."""
    log = FamilyLog(max_children=2)
    log.begin("scout")
    log.begin("one", "scout")
    log.spawn("two", "scout")
    log.spawn("three", "scout")
    log.end("scout")
    log.refuse("two")
    log.tell("one", ask.stop())
    log.end("one")
    log.announce("one")
    log.announce("scout")
    log.tell("scout", ask.acknowledge())
    log.tell("scout", ask.archive())
    return log.recorded
