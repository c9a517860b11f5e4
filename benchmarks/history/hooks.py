"""What a few runs' receivers are told outside the log, and how often that fails."""

from application.log.texts import TextStore
from benchmarks.history.fates import Fate
from benchmarks.history.requests import Child, commanded
from benchmarks.history.society import Society
from benchmarks.history.town import Life, Wait, ask
from domain.run.commands import ConfirmHook, NoteHookFailure, ParkHook, RunCommand
from domain.run.facts import HOOK_ORDER, HookName, HookState
from domain.run.state import Run

ATTEMPTS_MAX = 3
RETRY_SECONDS_MAX = 300
TELLING_SECONDS = 0.03
FAILURES: dict[Fate, dict[HookName, int]] = {
    Fate.HEARD: {},
    Fate.BOUND: {},
    Fate.UNHEARD: {"subagentSpawned": 1, "subagentEnded": ATTEMPTS_MAX},
}
"""At how many attempts a hook fails, of those fates in which there are hooks. One that a message
goes on with tells what is left at the first attempt."""

_ERROR = "the hook answered HTTP 503"


def hooks_of(child: Child) -> tuple[HookName, ...]:
    """The hooks that are told of the child's run."""
    return HOOK_ORDER if child.fate in FAILURES else ()


def told(society: Society, child: Child, run: Run) -> Life[None]:
    """All that is due is told, or tried often enough."""
    while (state := next((one for one in run.hooks if one.due_at is not None), None)) is not None:
        assert state.due_at is not None
        left = (state.due_at - society.town.now).total_seconds()
        yield Wait(max(0.0, left) + TELLING_SECONDS)
        run = society.log.runs[run.run_id]
        text_store = child.text_store(society)
        command = _outcome(child, state, text_store)
        run = (yield from ask(commanded(society, run, (command,), text_store))).runs[run.run_id]


def _outcome(child: Child, state: HookState, text_store: TextStore) -> RunCommand:
    attempt = state.attempts + 1
    if attempt > FAILURES.get(child.fate, {}).get(state.name, 0):
        return ConfirmHook(hook=state.name, status_code=204)
    error = text_store.store("hookError", _ERROR)
    if attempt == ATTEMPTS_MAX:
        return ParkHook(hook=state.name, attempt=attempt, error=error)
    return NoteHookFailure(
        hook=state.name, attempt=attempt, error=error, retry_seconds_max=RETRY_SECONDS_MAX
    )
