"""Sessions at every stage of their life, by the events that bring them there."""

from domain.session.decide import ProvideTranscript
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
from domain.values.shared_values import SharedChange, SharedKey
from tests.support.builders.storytelling import ROOT, observed, observed_child, ref, run_id

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
