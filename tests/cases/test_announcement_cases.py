"""Cases of announcements, and of replies that suppress them."""

import re
from collections.abc import Mapping

import pytest

from domain.delivery.announcement import (
    ChildFinding,
    RunStats,
    announce,
    child_findings,
    duration_text,
    stats_line,
)
from domain.delivery.silence import is_silent, without_silent_tokens
from domain.delivery.transcript import MessageEntry, ParsedEntry, ToolEntry
from tests.support.builders.readings import read_entries
from tests.support.cases.cases import Answer, Case, Given, Runner, cases_of
from tests.support.cases.comparison import hold
from tests.support.cases.families import accounts_told, announced_as, ended_after

KEY = "agent:main:subagent:x"


def formatted(given: Given) -> Answer:
    """Return the announcement of a run that has ended, with all its output; each run has its own
    inbox entry, whatever its requester's address.
    """
    if "items" in given:
        return {"sends": accounts_told(given["items"])}
    reading = read_entries([MessageEntry("assistant", text) for text in given["reads"]])
    result = announce(outcome="success", result=reading.result, stats=RunStats(session_key=KEY))
    return {"message": result.text if result else None}


def named(given: Given) -> Answer:
    """Return the key that identifies repeated announcements, and the key without its prefix."""
    key = announced_as(given["child"], given["run"])
    return {"announceId": key.removeprefix("announce:"), "idempotencyKey": key}


def timed(given: Given) -> Answer:
    """Return the duration of a run with this end."""
    run = ended_after(given["startedAt"], given["endedAt"], given["status"])
    return {"elapsedMs": run.runtime_ms}


def read(given: Given) -> Answer:
    """Return the result of a run's output, without tool results (`later`), and the child's line
    with its parent's result, where `Status` has a capital.
    """
    if "child" in given:
        child = given["child"]
        finding = ChildFinding(
            name="child",
            outcome=child["outcome"]["status"],
            error=child["outcome"]["error"],
            result=child["frozenResultText"],
        )
        return {"findings": child_findings([finding]).replace("\nStatus: ", "\nstatus: ")}
    result = read_entries([entry for line in given["history"] for entry in _entries(line)]).result
    return {"output": result, "later": result}


def _entries(line: str) -> list[ParsedEntry]:
    if output := re.fullmatch(r"assistant '(.*)'", line):
        return [MessageEntry("assistant", output[1])]
    if tool_result := re.fullmatch(r"toolResult '(.*)'", line):
        return [ToolEntry("read", None, tool_result[1])]
    if called := re.fullmatch(r"assistant calls (\w+)", line):
        return [ToolEntry(called[1], "{}", None)]
    assert line == "assistant tool call without text"
    return [MessageEntry("assistant", ""), ToolEntry("read", "{}", None)]


def numbered(given: Given) -> Answer:
    """Return the line of numbers up to the session key, and a duration."""
    line = stats_line(
        RunStats(
            session_key=KEY,
            runtime_ms=given["runtimeMs"],
            input_tokens=given.get("in"),
            output_tokens=given.get("out"),
        )
    )
    shown, _, key = line.partition(" • sessionKey ")
    assert key == KEY
    return {"line": shown, "runtime": duration_text(given["runtimeMs"])}


def whole_reply(given: Given) -> Answer:
    """Return whether a reply has only a token."""
    return {"silent": is_silent(given["text"])}


def beginning(given: Given) -> Answer:
    """Return whether a reply begins with a token that the next word follows at once."""
    shown = without_silent_tokens(given["text"])
    return {"result": given["text"].endswith(shown) and shown not in ("", given["text"])}


def stripped(given: Given) -> Answer:
    """Return a reply without the tokens at its ends."""
    return {"result": without_silent_tokens(given["text"])}


RUNNERS: Mapping[str, Runner] = {
    "announce.format": formatted,
    "announce.id": named,
    "announce.outcome": timed,
    "announce.output": read,
    "announce.stats": numbered,
    "silent.is": whole_reply,
    "silent.leading": beginning,
    "silent.strip": stripped,
}


@pytest.mark.parametrize("case", cases_of(RUNNERS))
def test_an_announcement_is_as_the_case_says(case: Case) -> None:
    hold(RUNNERS[case.area](case.given), case)
