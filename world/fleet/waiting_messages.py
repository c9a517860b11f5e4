"""The messages that wait for a session to go on, read off the log event by event."""

from collections.abc import Mapping
from typing import Any

QUEUE_EVENTS = ("MessageQueued", "MessageReceived", "MessagesDropped", "ContinuationFailed")


def note(waiting: set[str], event: Mapping[str, Any]) -> None:
    """Take in the next of `QUEUE_EVENTS`. A message is named by the run that it is to become."""
    payload = event["payload"]
    match event["type"]:
        case "MessageQueued":
            waiting.add(payload["runId"])
        case "MessageReceived":
            waiting.discard(event["runId"])
        case "MessagesDropped":
            waiting.difference_update(payload["runIds"])
        case "ContinuationFailed":
            waiting.discard(payload["runId"])
