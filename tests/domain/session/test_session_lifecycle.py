"""Lifecycle of a session: its stages, its depth, and its archive."""

from collections.abc import Callable
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.run.events import ArchiveScheduled
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
from domain.session.role import ANCESTORS_MAX, FoundDepth, KnownDepth, depth_of
from domain.session.state import (
    SESSION_LIFECYCLE,
    ProvidedTranscript,
    Session,
    SessionStage,
    evolve,
)
from domain.values.refusals import CorruptHistoryError, Rejected, SessionIsClosed, WrongStage
from domain.values.session_key import depth_of_shape
from domain.values.shared_values import SharedChange, SharedKey
from tests.support.builders import continued_runs as continued
from tests.support.builders import run_commands as ask
from tests.support.builders.family_log import FamilyLog, announced
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
    """Return the admission of a run."""
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


def test_table_has_every_stage_and_every_command() -> None:
    assert [stage for stage, *_ in _BODY] == list(HISTORIES)
    assert _HEAD[1:] == list(COMMANDS)
    types = {type(command()) for command in COMMANDS.values()}
    assert types == set(get_args(SessionCommand))


@pytest.mark.parametrize(("stage", "command", "cell"), CELLS)
def test_at_this_stage_this_command_does(stage: str, command: str, cell: str) -> None:
    result = given_session(*HISTORIES[stage]).when(COMMANDS[command]())
    if cell in REFUSED:
        result.refused(REFUSED[cell])
    else:
        result.then(*(NAMED[name] for name in RECORDED[cell]))


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
        with pytest.raises(CorruptHistoryError, match=type(event).__name__):
            evolve(before[stage], event, stamp(99))
    else:
        assert evolve(before[stage], event, stamp(99)).stage == after


def test_events_of_the_grid_are_all_there_are() -> None:
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


def test_child_is_released_and_settled_only_once() -> None:
    story = given_session(*HISTORIES["child-with-child"])
    story = story.when(ReleaseChild(CHILD_RUN)).then(RELEASED)
    story.when(ReleaseChild(CHILD_RUN)).then()
    story = story.when(SettleChild(CHILD_RUN)).then(SETTLED)
    story.when(SettleChild(CHILD_RUN)).then()


# How deep a session is: the record, else the chain of its parents, else the shape of its key.

CHILD = "agent:main:subagent:one"

GRANDCHILD = "agent:main:subagent:two"

DEPTHS: dict[str, tuple[str, dict[str, KnownDepth], FoundDepth]] = {
    "recorded": (GRANDCHILD, {GRANDCHILD: KnownDepth(4, ROOT)}, FoundDepth(4, "record")),
    "recorded as digits": (CHILD, {CHILD: KnownDepth(" 2 ", None)}, FoundDepth(2, "record")),
    "parent recorded": (
        GRANDCHILD,
        {GRANDCHILD: KnownDepth(None, CHILD), CHILD: KnownDepth(7, None)},
        FoundDepth(8, "chain"),
    ),
    "not on record": ("agent:main:subagent:a:subagent:b", {}, FoundDepth(2, "shape")),
    "circle": (
        CHILD,
        {CHILD: KnownDepth(None, GRANDCHILD), GRANDCHILD: KnownDepth(None, CHILD)},
        FoundDepth(2, "chain"),
    ),
    "its own parent": (CHILD, {CHILD: KnownDepth(None, CHILD)}, FoundDepth(1, "shape")),
    **{
        f"recorded as {depth!r}": (CHILD, {CHILD: KnownDepth(depth, None)}, FoundDepth(1, "shape"))
        for depth in (None, -1, 1.5, True, "two", "", [1])
    },
}


@pytest.mark.parametrize("name", DEPTHS)
def test_depth_is_of_the_record_the_chain_or_the_shape(name: str) -> None:
    key, known, expected = DEPTHS[name]
    assert depth_of(key, known.get) == expected


def test_endless_chain_of_parents_has_a_limit() -> None:
    def endless(key: str) -> KnownDepth:
        return KnownDepth(None, f"{key}x")

    assert depth_of("session", endless) == FoundDepth(ANCESTORS_MAX, "chain")


@given(
    st.dictionaries(
        st.sampled_from("abcdef"),
        st.builds(
            KnownDepth,
            st.none() | st.integers(-2, 9) | st.text(max_size=3),
            st.none() | st.sampled_from("abcdef"),
        ),
    ),
    st.sampled_from("abcdef"),
)
def test_any_parents_give_a_depth(known: dict[str, KnownDepth], key: str) -> None:
    result = depth_of(key, known.get)
    assert result.depth >= 0
    if result.source == "shape":
        assert result.depth == depth_of_shape(key)


# How a session of several runs is put away: the newest run first, and then each before it.


def three_runs() -> FamilyLog:
    """Return a log in which the session of `scout` was continued twice, and its newest run is
    announced.
    """
    log = announced("scout")
    for name in ("second", "third"):
        log.go_on(name, "scout")
        log.finish(name)
    return log


def closings(log: FamilyLog) -> list[str]:
    """Why sessions were closed, in order."""
    return [event.event.reason for event in log.recorded if isinstance(event.event, SessionClosed)]


def test_runs_of_a_session_are_archived_newest_first() -> None:
    log = three_runs()
    assert log.tell("third", ask.archive()) == [
        "run third RunArchived",
        "session scout SessionClosed",
        "run second ArchiveScheduled",
    ]
    second = log.run("second")
    assert second.archive_at == second.put_away_from == log.recorded[-1].stamp.recorded_at
    assert (log.run("scout").archive_at, log.run("scout").put_away_from) == (None, None)
    assert log.tell("second", ask.archive()) == [
        "run second RunArchived",
        "run scout ArchiveScheduled",
    ]
    assert log.run("scout").archive_at is not None
    assert log.tell("scout", ask.archive()) == ["run scout RunArchived"]
    assert closings(log) == ["archived"]
    reasons = [event.event for event in log.recorded if isinstance(event.event, ArchiveScheduled)]
    assert [reason.reason for reason in reasons] == ["continuation_archived"] * 2


def test_continued_run_cannot_be_archived() -> None:
    log = announced("scout")
    assert log.run("scout").archive_at is not None
    log.message("again", "scout")
    assert log.run("scout").archive_at is None
    before = list(log.recorded)
    with pytest.raises(WrongStage, match="cannot archive the run: the run is continued by run"):
        log.tell("scout", ask.archive())
    assert log.recorded == before
    assert log.session("scout").stage == "open"
    log.tell("again", ask.stop())
    log.announce("again")
    with pytest.raises(WrongStage):
        log.tell("scout", ask.archive())
    log.tell("again", ask.archive())
    assert log.tell("scout", ask.archive()) == ["run scout RunArchived"]


STEPS: dict[str, Callable[[FamilyLog, str], object]] = {
    "queued": lambda log, name: None,
    "claimed": lambda log, name: log.tell(name, ask.claim()),
    "started": lambda log, name: log.tell(name, ask.start(log.run(name).epoch)),
    "ended": lambda log, name: log.end(name),
    "announced": lambda log, name: log.announce(name),
}


@pytest.mark.parametrize("goes_on", [False, True])
@pytest.mark.parametrize("stage", STEPS)
def test_closed_session_is_archived_once_its_run_is_announced(stage: str, goes_on: bool) -> None:
    log = announced("scout") if goes_on else FamilyLog()
    name = "again" if goes_on else "scout"
    if goes_on:
        log.message(name, "scout")
    else:
        log.spawn(name)
        log.create(name)
    steps = iter(STEPS.items())
    for reached, step in steps:
        step(log, name)
        if reached == stage:
            break
    assert log.tell(name, continued.close()) == [
        f"run {name} ArchiveScheduled",
        "session scout SessionClosed",
    ]
    assert log.tell(name, continued.close()) == []
    assert log.run(name).put_away_from is not None
    with pytest.raises(SessionIsClosed):
        log.spawn("below", "scout")
    for _, step in steps:
        assert log.run(name).archive_at is None
        step(log, name)
    run = log.run(name)
    announced_at = run.announced_at
    assert announced_at is not None
    assert run.archive_at == (run.put_away_from if stage == "announced" else announced_at)
    before = ["run scout ArchiveScheduled"] if goes_on else []
    assert log.tell(name, ask.archive()) == [f"run {name} RunArchived", *before]
    assert closings(log) == ["closed"]


# Transcript of an external session: provided as a whole each time.


def provide(text: str = "said so far", tokens: int | None = 40) -> ProvideTranscript:
    """Return the upload of a transcript with two entries."""
    return ProvideTranscript(entries=2, tokens=tokens, content=ref(text), by=ROOT)


def test_last_provided_transcript_counts() -> None:
    story = given_session(observed(), PROVIDED)
    story.when(provide()).then()
    longer = story.when(provide("said so far and more")).then(TranscriptProvided)
    recounted = longer.when(provide("said so far and more", tokens=None)).then(TranscriptProvided)
    first, last = story.state, recounted.state
    assert first is not None
    assert last is not None
    assert first.transcript == ProvidedTranscript(
        entries=2, tokens=40, content=ref("said so far"), by=ROOT, position=2
    )
    assert last.transcript == ProvidedTranscript(
        entries=2, content=ref("said so far and more"), by=ROOT, position=4
    )
