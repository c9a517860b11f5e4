"""The checker finds nothing in a sound history, and every kind of contradiction in a bad one."""

import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from tests.soak.contradictions import IN_RELATED, IN_SMALL, IN_TALKED, Mutation, call
from tests.soak.small_histories import RELATED, SMALL, TALKED
from tests.support.servers.preloaded import ROOT
from world.check import RULES, check
from world.checker.history import History, Writing, read_history, write_end, write_events

SEEDED = ((SMALL, IN_SMALL), (TALKED, IN_TALKED), (RELATED, IN_RELATED))


@pytest.mark.parametrize("history", [SMALL, TALKED, RELATED], ids=["small", "talked", "related"])
def test_a_good_history_has_no_contradiction(history: History) -> None:
    assert check(history) == {}


@pytest.mark.parametrize(
    ("history", "rule", "mutate"),
    [
        pytest.param(history, rule, mutate, id=wrong)
        for history, found in SEEDED
        for rule, wrongs in found.items()
        for wrong, mutate in wrongs.items()
    ],
)
def test_a_contradiction_is_found(history: History, rule: str, mutate: Mutation) -> None:
    broken = check(mutate(history))
    assert rule in broken, f"found only {broken}"


def test_a_server_that_is_not_ready_need_not_know_what_others_told() -> None:
    unready = call("reads", status=503, position=7, server=1, answer={})
    assert check(unready(SMALL)) == {}


def test_each_rule_has_a_contradiction_that_it_finds() -> None:
    assert {rule for _, found in SEEDED for rule in found} == set(RULES)


def test_what_nobody_heard_of_may_be_recorded_or_not() -> None:
    heard_of_nothing = [
        replace(call, status=None, position=None, answer={})
        for call in SMALL.calls
        if call.label == "b"
    ]
    others = [call for call in SMALL.calls if call.label != "b"]
    unheard = replace(SMALL, calls=(*others, *heard_of_nothing), deaths=None)
    assert check(unheard) == {}
    never_arrived = replace(unheard.calls[-1], label="c", key="key of c")
    assert check(replace(unheard, calls=(*unheard.calls, never_arrived))) == {}


def test_each_answer_to_a_batch_may_name_another_of_its_runs() -> None:
    refused = next(call for call in RELATED.calls if call.caller == "refused")
    answer = {"code": "idempotency_in_flight", "runId": "r2"}
    under_way = replace(refused, number=2, status=409, answer=answer)
    assert check(replace(RELATED, calls=(*RELATED.calls, under_way))) == {}


def test_the_checker_is_a_program_that_names_what_it_finds(tmp_path: Path) -> None:
    bad = call("again", answer={"runId": "b"})(SMALL)
    for name, history in {"good": SMALL, "talked": TALKED, "bad": bad}.items():
        folder = tmp_path / name
        folder.mkdir()
        writing = Writing(folder, "all")
        for item in history.calls:
            writing.call(item)
        writing.close()
        write_events(folder, map(_body, history.events))
        write_end(folder, history.inboxes, history.cap, history.deaths)
        assert read_history(folder) == history
    good, talked, result = (_checked(tmp_path / name) for name in ("good", "talked", "bad"))
    assert (good.returncode, "no contradiction" in good.stdout) == (0, True)
    assert (talked.returncode, "no contradiction" in talked.stdout) == (0, True)
    assert result.returncode == 1
    assert "VIOLATED one_key_is_one_run" in result.stdout
    assert "key key of a was answered with 2 runs: a, b" in result.stdout


def _checked(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "world.check", str(folder)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def _body(value: Any) -> dict[str, Any]:
    """Return the event as a server describes it."""
    facts = asdict(value)["facts"]
    if "requester" in facts:
        facts["requester"] = {"sessionKey": facts["requester"]}
        facts["options"] = {text: facts.pop(text) for text in ("mode", "cleanup") if text in facts}
    return {
        "position": value.position,
        "stream": value.stream,
        "version": value.version,
        "type": value.type,
        "recordedAt": value.recorded_at.isoformat(),
        "appendLast": value.append_last,
        "runId": value.run_id,
        "traceparent": value.trace,
        "payload": facts,
    }
