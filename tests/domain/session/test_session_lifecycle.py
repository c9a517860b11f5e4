"""The lifecycle of a session."""

from collections.abc import Callable
from typing import get_args

import pytest

from domain.session.decide import (
    AdmitChild,
    AdmitContinuation,
    CapReached,
    ChangePreamble,
    ChangeSharedContext,
    CloseSession,
    ContinueSession,
    InheritSharedContext,
    NotSpawnedHere,
    ProvideTranscript,
    ReleaseChild,
    SessionCommand,
    SettleChild,
    TranscriptStoredHere,
)
from domain.session.events import (
    ChildAdmitted,
    ChildReleased,
    ChildSettled,
    PreambleChanged,
    SessionClosed,
    SessionContinued,
    SessionEvent,
    SharedContextChanged,
    SharedContextInherited,
    ToolRefused,
    TranscriptProvided,
)
from domain.session.state import SESSION_LIFECYCLE, Session, SessionStage, evolve
from domain.values.refusals import CorruptHistory, Rejected, SessionIsClosed
from domain.values.shared_values import SharedChange, SharedKey
from tests.support.builders.storytelling import (
    ROOT,
    given_session,
    observed,
    observed_child,
    ref,
    run_id,
    session_of,
    stamp,
)

# Sessions at every stage of their life, by the events that bring them there.

CHILD_RUN = run_id(10)
CAP = 2


def admitted(number: int, active_children: int = 0) -> ChildAdmitted:
    """A run takes a place."""
    return ChildAdmitted(run_id=run_id(number), active_children=active_children, max_children=CAP)


PROVIDE = ProvideTranscript(entries=2, tokens=40, content=ref("said so far"), by=ROOT)
RELEASED = ChildReleased(run_id=CHILD_RUN)
SETTLED = ChildSettled(run_id=CHILD_RUN)
CHANGES = (SharedChange(key="goal", value=ref('"win"')),)
KEYS = (SharedKey(key="goal", value=ref('"win"'), session_key=ROOT, position=5),)
TOOL_REFUSED = ToolRefused(tool="subagents", by="child")
PREAMBLE_CHANGED = PreambleChanged(preamble=ref("It rains."), by=ROOT)
SHARED = SharedContextChanged(cause="patch", changes=CHANGES, by=ROOT)
INHERITED = SharedContextInherited(run_id=run_id(1), from_session=ROOT, at_position=7, keys=KEYS)
CLOSED = SessionClosed(reason="archived")
PROVIDED = TranscriptProvided(
    entries=2, tokens=40, content=ref("said so far"), by="agent:main:main"
)
CONTINUED = SessionContinued(run_id=run_id(2), role="leaf", control_scope="none")
HISTORIES: dict[str, tuple[SessionEvent, ...]] = {
    "unseen": (),
    "root": (observed(),),
    "root-with-child": (observed(), admitted(10)),
    "root-full": (observed(), admitted(10), admitted(11, 1)),
    "root-with-transcript": (observed(), PROVIDED),
    "child-with-child": (observed_child(), admitted(10)),
    "child-with-released": (observed_child(), admitted(10), RELEASED),
    "child-with-settled": (observed_child(), admitted(10), SETTLED),
    "child-gone-on-with": (observed_child(), CONTINUED),
    "closed": (observed(), CLOSED),
    "closed-with-child": (observed_child(), admitted(10), CLOSED),
    "closed-full": (observed_child(), admitted(10), CLOSED, admitted(11, 1)),
}


# The life of a session: every stage by every command and by every event.

# A word in capitals is a refusal; each other word is the event that is recorded.
COMMANDS_AT_STAGES = """
stage                observe  admit    readmit  continue  release  settle  provide   close   share   inherit   preamble

unseen               Observed UNKNOWN  UNKNOWN  UNKNOWN   UNKNOWN  UNKNOWN UNKNOWN   UNKNOWN UNKNOWN UNKNOWN   UNKNOWN
root                 nothing  Admitted Admitted Continued nothing  nothing Provided  Closed  Shared  Inherited   NOT-HERE
root-with-child      nothing  Admitted Admitted Continued Released nothing Provided  Closed  Shared  Inherited   NOT-HERE
root-full            nothing  FULL     FULL     Continued Released nothing Provided  Closed  Shared  Inherited   NOT-HERE
root-with-transcript nothing  Admitted Admitted Continued nothing  nothing nothing   Closed  Shared  Inherited   NOT-HERE
child-with-child     nothing  Admitted Admitted Continued Released Settled KEPT-HERE Closed  Shared  Inherited   Changed
child-with-released  nothing  Admitted Admitted Continued nothing  Settled KEPT-HERE Closed  Shared  Inherited   Changed
child-with-settled   nothing  Admitted Admitted Continued Released nothing KEPT-HERE Closed  Shared  Inherited   Changed
child-gone-on-with   nothing  Admitted Admitted Continued nothing  nothing KEPT-HERE Closed  Shared  Inherited   Changed
closed               nothing  CLOSED   Admitted CLOSED    nothing  nothing CLOSED    nothing CLOSED  Inherited   NOT-HERE
closed-with-child    nothing  CLOSED   Admitted CLOSED    Released Settled KEPT-HERE nothing CLOSED  Inherited   CLOSED
closed-full          nothing  CLOSED   FULL     CLOSED    Released Settled KEPT-HERE nothing CLOSED  Inherited   CLOSED
"""  # noqa: E501

EVENTS_AT_STAGES = """
unseen   SessionObserved     open
open     ChildAdmitted       open
open     ChildReleased       open
open     ChildSettled        open
open     TranscriptProvided  open
open     SessionContinued    open
open     SessionClosed       closed
open     SharedContextChanged    open
open     SharedContextInherited  open
open     PreambleChanged         open
open     ToolRefused             open
closed   ChildAdmitted       closed
closed   ChildReleased       closed
closed   ChildSettled        closed
closed   SharedContextChanged    closed
closed   SharedContextInherited  closed
closed   ToolRefused             closed
"""

COMMANDS: dict[str, Callable[[], SessionCommand]] = {
    "observe": observed,
    "admit": lambda: AdmitChild(run_id(12), CAP),
    "readmit": lambda: AdmitContinuation(run_id(12), CAP),
    "continue": lambda: ContinueSession(run_id(2), "leaf", "none"),
    "release": lambda: ReleaseChild(CHILD_RUN),
    "settle": lambda: SettleChild(CHILD_RUN),
    "provide": lambda: PROVIDE,
    "close": lambda: CloseSession("archived"),
    "share": lambda: ChangeSharedContext(CHANGES, cause="patch", by=ROOT),
    "inherit": lambda: InheritSharedContext(run_id(1), ROOT, 7, KEYS),
    "preamble": lambda: ChangePreamble(ref("It rains."), ROOT),
}
EVENTS: tuple[SessionEvent, ...] = (
    *(observed(), admitted(10), RELEASED),
    *(SETTLED, PROVIDED, CONTINUED, CLOSED),
    *(SHARED, INHERITED, PREAMBLE_CHANGED, TOOL_REFUSED),
)
NAMED: dict[str, type[SessionEvent]] = {type(event).__name__: type(event) for event in EVENTS}
RECORDED: dict[str, tuple[str, ...]] = {
    "Observed": ("SessionObserved",),
    "Admitted": ("ChildAdmitted",),
    "Released": ("ChildReleased",),
    "Settled": ("ChildSettled",),
    "Provided": ("TranscriptProvided",),
    "Continued": ("SessionContinued",),
    "Closed": ("SessionClosed",),
    "Shared": ("SharedContextChanged",),
    "Inherited": ("SharedContextInherited",),
    "Changed": ("PreambleChanged",),
    "nothing": (),
}
REFUSED: dict[str, type[Rejected]] = {
    "UNKNOWN": Rejected,
    "FULL": CapReached,
    "CLOSED": SessionIsClosed,
    "KEPT-HERE": TranscriptStoredHere,
    "NOT-HERE": NotSpawnedHere,
}


def _rows(table: str) -> list[list[str]]:
    return [line.split() for line in table.splitlines() if line.strip()]


_HEAD, *_BODY = _rows(COMMANDS_AT_STAGES)
CELLS = [
    (stage, command, cell)
    for stage, *cells in _BODY
    for command, cell in zip(_HEAD[1:], cells, strict=True)
]
ALLOWED = {(stage, event): after for stage, event, after in _rows(EVENTS_AT_STAGES)}


def test_the_table_has_every_stage_and_every_command() -> None:
    assert [stage for stage, *_ in _BODY] == list(HISTORIES)
    assert _HEAD[1:] == list(COMMANDS)
    asked = {type(command()) for command in COMMANDS.values()}
    assert asked == set(get_args(SessionCommand))


@pytest.mark.parametrize(("stage", "command", "cell"), CELLS)
def test_at_this_stage_this_command_does(stage: str, command: str, cell: str) -> None:
    told = given_session(*HISTORIES[stage]).when(COMMANDS[command]())
    if cell in REFUSED:
        told.refused(REFUSED[cell])
    else:
        told.then(*(NAMED[name] for name in RECORDED[cell]))


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
@pytest.mark.parametrize("stage", SESSION_LIFECYCLE)
def test_at_this_stage_this_event_is_history_or_corrupt(
    stage: SessionStage, event: SessionEvent
) -> None:
    before: dict[SessionStage, Session | None] = {
        "unseen": None,
        "open": session_of(*HISTORIES["child-with-child"]),
        "closed": session_of(*HISTORIES["closed-with-child"]),
    }
    after = ALLOWED.get((stage, type(event).__name__))
    if after is None:
        with pytest.raises(CorruptHistory, match=type(event).__name__):
            evolve(before[stage], event, stamp(99))
    else:
        assert evolve(before[stage], event, stamp(99)).stage == after


def test_the_events_of_the_grid_are_all_there_are() -> None:
    assert set(NAMED.values()) == set(get_args(SessionEvent))
    assert {name for _, name in ALLOWED} == set(NAMED)


# The life of a session in sentences.


def test_preamble_is_changed_once() -> None:
    changed = given_session(*HISTORIES["child-with-child"]).when(
        ChangePreamble(ref("It rains."), ROOT)
    )
    story = changed.then(PREAMBLE_CHANGED)
    story.when(ChangePreamble(ref("It rains."), "somebody else")).then()
    story.when(ChangePreamble(None, ROOT)).then(PreambleChanged(preamble=None, by=ROOT))


@pytest.mark.parametrize(
    ("before", "taken", "gone"),
    [
        ("child-with-child", 1, (RELEASED, SETTLED)),
        ("child-with-settled", 1, (RELEASED,)),
        ("child-with-released", 0, (SETTLED,)),
    ],
)
def test_continuation_has_the_place_of_the_run_that_it_replaces(
    before: str, taken: int, gone: tuple[SessionEvent, ...]
) -> None:
    again = AdmitContinuation(run_id(12), CAP, replaces=CHILD_RUN)
    given_session(*HISTORIES[before]).when(again).then(admitted(12, taken), *gone)


def test_a_child_is_released_and_settled_only_once() -> None:
    story = given_session(*HISTORIES["child-with-child"])
    story = story.when(ReleaseChild(CHILD_RUN)).then(RELEASED)
    story.when(ReleaseChild(CHILD_RUN)).then()
    story = story.when(SettleChild(CHILD_RUN)).then(SETTLED)
    story.when(SettleChild(CHILD_RUN)).then()
