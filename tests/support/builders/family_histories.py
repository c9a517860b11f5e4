"""What happened to a family, from the first request to the archive."""

from tests.support.builders import run_commands as ask
from tests.support.builders.continued_runs import close
from tests.support.builders.family_log import FamilyLog, Recorded


def a_family() -> list[Recorded]:
    """An orchestrator and those below it: refused, stopped, announced, acknowledged; it goes on
    with a message, is closed and put away, and one below it goes on after that."""
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
    log.go_on("again", "scout")
    log.tell("again", close())
    log.finish("again")
    for name in ("again", "scout"):
        log.tell(name, ask.archive())
    log.message("later", "one")
    return log.recorded
