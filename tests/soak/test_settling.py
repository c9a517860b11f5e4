"""A fleet is settled when every run is over and no message is queued."""

from pathlib import Path
from typing import Any

import pytest

from world.fleet.fleet import Fleet

QUEUED = [
    {"type": "MessageQueued", "runId": "a", "payload": {"runId": text}} for text in ("m", "n", "o")
]
RECEIVED = {"type": "MessageReceived", "runId": "m", "payload": {"runId": "m"}}
OVER = {
    "became a run": {"type": "MessageReceived", "runId": "o", "payload": {"runId": "o"}},
    "refused": {"type": "ContinuationFailed", "runId": "a", "payload": {"runId": "o"}},
    "dropped": {"type": "MessagesDropped", "runId": "a", "payload": {"runIds": ["o", "x"]}},
}
DROPPED = {"type": "MessagesDropped", "runId": "m", "payload": {"runIds": ["n"]}}


class Told(Fleet):
    """A fleet without servers, with given answers: stages of runs, and events of messages, moment
    by moment. The next one comes when a caller has seen that work continues.
    """

    def __init__(self, *moments: tuple[tuple[str, ...], list[dict[str, Any]]]) -> None:
        super().__init__(Path("nowhere"), {}, 0)
        self.left = [*moments]

    def read(self, path: str, **query: str | int) -> dict[str, Any]:
        stages, events = self.left[0]
        if path == "/v1/runs":
            found = [stage for stage in stages if stage == query["stage"]]
            if found:
                self.left.pop(0)
            return {"items": found}
        head = len(events)
        if "types" in query and len(self.left) > 1:
            self.left.pop(0)
        return {"items": events, "nextAfter": head, "head": head}


@pytest.mark.parametrize("how", OVER)
def test_a_fleet_is_not_at_rest_while_a_message_waits(how: str) -> None:
    behind = [*QUEUED, RECEIVED, DROPPED]
    fleet = Told(
        (("announced", "started"), QUEUED),
        (("announced", "ended"), QUEUED),
        (("announced", "announced"), QUEUED),
        (("announced", "session-created"), behind),
        (("announced", "archived"), behind),
        (("announced", "archived"), [*behind, OVER[how]]),
    )
    fleet.settle()
    assert len(fleet.left) == 1


def test_a_fleet_that_never_comes_to_rest_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("world.fleet.fleet.SETTLE_SECONDS_MAX", 0.05)
    waiting = Told((("announced",), QUEUED))
    with pytest.raises(AssertionError, match="every run to be over"):
        waiting.settle()
