"""What is asked of the runs of a random tree, in which words, and how it is turned down."""

from collections.abc import Callable

from domain.run.commands import RunCommand
from domain.run.facts import SpawnOptions
from domain.run.state import Run
from domain.spawn.continuation import RunIsActive
from domain.values.refusals import Rejected, SessionIsClosed
from tests.support.builders import run_commands as ask
from tests.support.builders.continued_runs import close
from tests.support.builders.family_log import FamilyLog, child_key
from tests.support.models import message_model as messages
from tests.support.models.family_model import OTHER_AGENT, Life

COMMANDS: dict[str, Callable[[Run, int], RunCommand]] = {
    "resume": lambda run, epoch: ask.resume(epoch),
    "resolve": lambda run, epoch: ask.resolve(epoch),
    "override": lambda run, epoch: ask.resolve(epoch, override_to=OTHER_AGENT),
    "prepare": lambda run, epoch: ask.prepare(epoch, child_session_key=child_key(run.run_id)),
    "create": lambda run, epoch: ask.create(epoch, depth=run.depth),
    "refuse": lambda run, epoch: ask.refuse(epoch),
    "start": lambda run, epoch: ask.start(epoch),
    "end": lambda run, epoch: ask.end(epoch),
    "stop": lambda run, epoch: ask.stop(),
    "announce": lambda run, epoch: ask.announce(),
    "skip": lambda run, epoch: ask.announce(disposition="skipped", text=None),
    "acknowledge": lambda run, epoch: ask.acknowledge(),
    "archive": lambda run, epoch: ask.archive(),
    "close": lambda run, epoch: close(),
}
MANNERS = {
    "plain": SpawnOptions(),
    "delete": SpawnOptions(cleanup="delete"),
    "lasting": SpawnOptions(mode="session"),
}
ERRORS: dict[str, type[Rejected]] = {
    messages.CLOSED: SessionIsClosed,
    messages.ACTIVE: RunIsActive,
}


def asked(log: FamilyLog, life: Life, kind: str, lane_width: int) -> RunCommand:
    """A command of this kind, from whoever holds the run."""
    run = log.run(life.name)
    if kind not in ("claim", "take over"):
        return COMMANDS[kind](run, run.epoch)
    held = sum(
        1
        for one in log.fold.runs.values()
        if one.depth == run.depth and one.stage in ("queued", "started") and one.holder
    )
    return ask.claim(
        lane_width=lane_width,
        lane_running=held,
        lost_epoch=run.epoch if kind == "take over" else None,
    )
