"""Given what scripts printed for a spawn, what they come to when they are configured otherwise."""

import base64
from typing import Any
from uuid import UUID

import pytest

from domain.run.events import AgentOverridden, ScriptsResolved
from domain.run.facts import ScriptReceipt
from domain.states import StreamEvent
from domain.what_if.record import recorded_decision
from domain.what_if.scripts import ReplayedScripts, outputs_needed, replay_scripts
from domain.what_if.verdict import NotReplayable
from tests.support.builders.decisions_again import change_of
from tests.support.builders.script_receipts import candidate, receipt
from tests.support.builders.storytelling import ref, requested, stamp

TEXTS: dict[UUID, str] = {}


def kept(text: str) -> Any:
    """A text that is on record."""
    found = ref(text)
    TEXTS[found.id] = text
    return found


def script(name: str, **values: Any) -> dict[str, Any]:
    """How a script is configured."""
    return {"id": name, "uri": f"/scripts/{name}", "position": "prepend", **values}


def configured(*scripts: dict[str, Any], agents: tuple[str, ...] = (), **spawnlog: Any) -> Any:
    """A configuration with these for everybody."""
    return {
        "agents": {
            "defaults": {"subagents": {"contextScripts": {"run": list(scripts)}}},
            "list": [{"id": one} for one in ("main", *agents)],
        },
        "spawnlog": spawnlog,
    }


def printed(name: str, output: str, injected: str | None = None, **changes: Any) -> ScriptReceipt:
    """A script that ended well."""
    said = {
        "outcome": "injected" if injected is not None else "empty",
        "output": kept(output),
        "output_bytes": len(output),
        "exit_code": 0,
        "injected": kept(injected) if injected is not None else None,
        "error": None,
    }
    both = {**said, **changes}
    return receipt(name, both.pop("outcome"), **both)


def again(
    receipts: list[ScriptReceipt],
    then: dict[str, Any],
    now: dict[str, Any],
    *,
    candidates: tuple[Any, ...] = (),
    override_to: str | None = None,
    erased: bool = False,
) -> ReplayedScripts:
    """What is given for a spawn that these scripts ran for."""
    resolved = ScriptsResolved(receipts=tuple(receipts), candidates=candidates)
    events: list[Any] = [requested(), resolved]
    if override_to is not None:
        overridden = {"from_agent_id": "main", "to_agent_id": override_to}
        events.append(AgentOverridden(candidates=candidates, **overridden))
    steps = [StreamEvent("", one, stamp(at)) for at, one in enumerate(events, 1)]
    record = recorded_decision(steps)
    change = change_of(then, now).agent("main").scripts
    needed = outputs_needed(record, change)
    texts = {} if erased else {one.id: TEXTS[one.id] for one in needed if one.id in TEXTS}
    return replay_scripts(record, change, texts)


def said(found: ReplayedScripts) -> list[tuple[str, str, str | None]]:
    """Which script puts what where."""
    return [
        (one.script_id, one.position, one.text if one.injected is None else TEXTS[one.injected.id])
        for one in found.contributions
    ]


def missing(*arguments: Any, **options: Any) -> str:
    """What is not on record."""
    with pytest.raises(NotReplayable) as refused:
        again(*arguments, **options)
    return str(refused.value)


A, B = script("a", priority=2), script("b", priority=1)
OF_BOTH = [printed("a", "one", "one"), printed("b", "two", "two")]


def test_nothing_changed_is_what_was_recorded() -> None:
    assert said(again(OF_BOTH, configured(A, B), configured(A, B))) == [
        ("a", "prepend", "one"),
        ("b", "prepend", "two"),
    ]


def test_another_priority_is_another_order() -> None:
    now = configured({**A, "priority": 0}, B)
    assert [one[0] for one in said(again(OF_BOTH, configured(A, B), now))] == ["b", "a"]


def test_one_that_is_taken_away_says_nothing() -> None:
    assert [one[0] for one in said(again(OF_BOTH, configured(A, B), configured(B)))] == ["b"]


def test_another_position_is_told_with_the_same_text() -> None:
    now = configured({**A, "position": "append"}, B)
    assert said(again(OF_BOTH, configured(A, B), now))[0] == ("a", "append", "one")


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"uri": "/scripts/other"}, "uri"),
        ({"format": "json"}, "format"),
        ({"argMap": {"label": "label"}}, "argMap"),
        ({"argMap": {"other": "task", "task": "task"}}, "argMap"),
    ],
)
def test_one_that_would_be_called_otherwise_is_named_with_why(
    changes: dict[str, Any], named: str
) -> None:
    plain = {**A, "argMap": {"task": "task", "other": "task"}}
    text = missing(OF_BOTH, configured(plain, B), configured({**plain, **changes}, B))
    assert text == f'context script "a": its {named} changed, so it would be called otherwise'


def test_a_new_one_is_named() -> None:
    text = missing([OF_BOTH[0]], configured(A), configured(A, B))
    assert text == 'context script "b": it is new, so there is no output of it'


def test_another_return_key_is_read_from_the_output() -> None:
    output = '{"message": "one", "note": "a note"}'
    now = configured({**A, "returnKey": "note"})
    receipts = [printed("a", output, "one")]
    assert said(again(receipts, configured(A), now)) == [("a", "prepend", "a note")]


def test_an_output_that_is_no_text_is_read_byte_by_byte() -> None:
    raw = b'{"message": "one", "note": "a note \xff"}'
    one = printed(
        "a",
        base64.b64encode(raw).decode(),
        "one",
        output_encoding="base64",
        output_bytes=len(raw),
    )
    now = configured({**A, "returnKey": "note"})
    assert said(again([one], configured(A), now)) == [("a", "prepend", "a note \ufffd")]


def test_an_output_of_before_encodings_were_recorded_is_read_as_it_was_kept() -> None:
    one = printed("a", '{"message": "one", "note": "a note"}', "one", output_encoding=None)
    now = configured({**A, "returnKey": "note"})
    assert said(again([one], configured(A), now)) == [("a", "prepend", "a note")]


def test_an_erased_output_is_named_where_it_is_needed_alone() -> None:
    receipts = [printed("a", '{"message": "one", "note": "x"}', "one")]
    now = configured({**A, "returnKey": "note"})
    assert missing(receipts, configured(A), now, erased=True) == (
        'context script "a": its output was erased'
    )
    elsewhere = configured({**A, "position": "append"})
    assert [one[1] for one in said(again(receipts, configured(A), elsewhere, erased=True))] == [
        "append"
    ]


def test_what_is_an_error_now_stops_the_rest_where_that_is_said() -> None:
    receipts = [printed("a", '{"message": "one", "note": "bad"}', "one"), OF_BOTH[1]]
    wrong = {**A, "errorKey": "note"}
    going_on = again(receipts, configured(A, B), configured(wrong, B))
    assert [one[0] for one in said(going_on)] == ["b"]
    stopped = again(receipts, configured(A, B), configured({**wrong, "errorHandling": "stop"}, B))
    assert said(stopped) == []


def test_one_that_was_skipped_and_would_not_be_now_is_named() -> None:
    receipts = [
        receipt("a", "failed", exit_code=1, output=None),
        receipt("b", "skipped", output=None, duration_ms=0),
    ]
    then = configured({**A, "errorHandling": "stop"}, B)
    assert said(again(receipts, then, then)) == []
    assert missing(receipts, then, configured(A, B)) == 'context script "b": it was not run then'


def test_an_answer_that_broke_off_stays_a_failure_whatever_is_read_from_it() -> None:
    """Its first bytes came with status 200, and then nothing more."""
    cut = printed("a", '{"message": "hal', outcome="failed", exit_code=None, status_code=200)
    now = configured({**A, "returnKey": "message"})
    assert said(again([cut], configured(A), now)) == []
    without_key = configured({**A, "errorKey": "none"})
    assert said(again([cut], configured(A), without_key)) == []


def test_a_reported_failure_is_read_again() -> None:
    wrong = {**A, "errorKey": "note"}
    output = '{"message": "one", "note": "bad"}'
    failed = printed("a", output, outcome="failed")
    assert said(again([failed], configured(wrong), configured(A))) == [("a", "prepend", "one")]


@pytest.mark.parametrize("changes", [{"exit_code": None}, {"status_code": 200, "exit_code": None}])
def test_a_timeout_that_may_have_decided_is_named(changes: dict[str, Any]) -> None:
    slow = printed("a", "half", outcome="failed", duration_ms=2_000, **changes)
    then, now = ({**A, "timeoutSeconds": one} for one in (2, 9))
    assert "ended by its timeout" in missing([slow], configured(then), configured(now))


def test_the_time_of_all_that_may_have_ended_one_is_named() -> None:
    ended = receipt("a", "failed", exit_code=None, output=None, duration_ms=1_000)
    then, now = (configured(A, scriptsTotalSeconds=one) for one in (1, 30))
    assert "scriptsTotalSeconds" in missing([ended], then, now)


def test_the_time_of_all_does_not_decide_where_no_script_changed() -> None:
    """They took all of it, and would again."""
    receipts = [
        receipt("a", "failed", exit_code=None, output=None, duration_ms=1_001),
        receipt("b", "skipped", output=None, duration_ms=0),
    ]
    then = configured(A, B, scriptsTotalSeconds=1)
    now = configured(A, B, agents=("another",), scriptsTotalSeconds=1)
    assert said(again(receipts, then, now)) == []


SLOW, CUT = script("slow", priority=9), script("cut", priority=5)
SECONDS = configured(SLOW, CUT, scriptsTotalSeconds=3)
SHORT = [
    printed("slow", "", duration_ms=2_000),
    printed("cut", "", outcome="failed", exit_code=None, duration_ms=990),
]
UNTOLD = "it failed, maybe for want of the time that all may take (scriptsTotalSeconds)"


@pytest.mark.parametrize(
    "listed",
    [(CUT,), (CUT, {**SLOW, "priority": 1}), ({**SLOW, "priority": 1}, {**CUT, "priority": 9})],
)
def test_what_others_had_left_no_time_for_may_say_something_where_they_do_not_run_before_it(
    listed: tuple[dict[str, Any], ...],
) -> None:
    now = configured(*listed, scriptsTotalSeconds=3)
    assert missing(SHORT, SECONDS, now) == f'context script "cut": {UNTOLD}'


def test_behind_the_same_ones_it_would_have_as_little_time_again() -> None:
    later = configured(SLOW, {**CUT, "priority": 1, "position": "append"}, scriptsTotalSeconds=3)
    assert again(SHORT, SECONDS, later).contributions == ()


def test_one_that_failed_while_there_was_time_fails_wherever_it_stands() -> None:
    early = [SHORT[0], printed("cut", "", outcome="failed", exit_code=1, duration_ms=20)]
    assert again(early, SECONDS, configured(CUT, scriptsTotalSeconds=3)).contributions == ()
    no_json = [SHORT[0], printed("cut", "{", outcome="failed", duration_ms=990)]
    assert again(no_json, SECONDS, configured(CUT, scriptsTotalSeconds=3)).contributions == ()


def test_less_time_for_all_than_they_took_is_named() -> None:
    receipts = [printed("a", "one", "one", duration_ms=3_000)]
    now = configured(A, scriptsTotalSeconds=2)
    assert "they took 3.0 s together" in missing(receipts, configured(A), now)


def test_a_limit_of_the_output_decides_only_about_outputs_of_that_size() -> None:
    long = printed("a", "x" * 2_000, "x" * 2_000)
    then, now = (configured(A, scriptOutputBytesMax=one) for one in (65_536, 1_024))
    assert "scriptOutputBytesMax" in missing([long], then, now)
    short = printed("a", "one", "one")
    assert said(again([short], then, now)) == [("a", "prepend", "one")]


def test_one_that_is_told_the_configuration_is_named_whatever_changed() -> None:
    told = {**A, "argMap": {"all": "cfg"}}
    receipts = [printed("a", "one", "one")]
    now = configured(told, agents=("another",))
    assert "it is told the configuration (cfg)" in missing(receipts, configured(told), now)


ROUTED = [printed("a", '{"agent": "editor"}', candidate="editor")]


def test_an_agent_that_is_configured_now_is_taken() -> None:
    router = script("a", agentIdOverrideKey="agent")
    proposed = (candidate("a", "editor", "not_configured"),)
    now = configured(router, agents=("editor",))
    assert again(ROUTED, configured(router), now, candidates=proposed).override_to == "editor"


def test_an_agent_without_its_credentials_is_not_taken() -> None:
    router = script("a", agentIdOverrideKey="agent")
    proposed = (candidate("a", "editor", "credentials_missing"),)
    then, now = (configured(router, agents=("editor", *more)) for more in ((), ("writer",)))
    assert again(ROUTED, then, now, candidates=proposed).override_to is None


def test_an_agent_that_is_gone_is_not_taken_any_more() -> None:
    router = script("a", agentIdOverrideKey="agent")
    proposed = (candidate("a", "editor", "winner"),)
    then, now = configured(router, agents=("editor",)), configured(router)
    found = again(ROUTED, then, now, candidates=proposed, override_to="editor")
    assert found.override_to is None
