"""What-if for scripts: the effect of recorded output under another configuration."""

import base64
from typing import Any, NamedTuple
from uuid import UUID

import pytest

from domain.run.events import AgentOverridden, ScriptsResolved
from domain.run.facts import ScriptReceipt
from domain.states import StreamEvent
from domain.what_if.record import recorded_decision
from domain.what_if.scripts import ReplayedScripts, outputs_needed, replay_scripts
from domain.what_if.verdict import NotReplayableError
from tests.support.builders.decisions_again import Values, change_of
from tests.support.builders.script_receipts import candidate, receipt
from tests.support.builders.storytelling import ref, requested, stamp

TEXTS: dict[UUID, str] = {}


def kept(text: str) -> Any:
    """Store a text on record. Return its reference."""
    found = ref(text)
    TEXTS[found.id] = text
    return found


def script(name: str, **values: Any) -> Values:
    """Return the configuration of a script."""
    return {"id": name, "uri": f"/scripts/{name}", "position": "prepend", **values}


def configured(*scripts: Values, agents: tuple[str, ...] = (), **spawnlog: Any) -> Values:
    """Return a configuration with these scripts for every agent."""
    return {
        "agents": {
            "defaults": {"subagents": {"contextScripts": {"run": list(scripts)}}},
            "list": [{"id": agent} for agent in ("main", *agents)],
        },
        "spawnlog": spawnlog,
    }


def printed(name: str, output: str, injected: str | None = None, **changes: Any) -> ScriptReceipt:
    """Return the receipt of a successful script."""
    messages = {
        "outcome": "injected" if injected is not None else "empty",
        "output": kept(output),
        "output_bytes": len(output),
        "exit_code": 0,
        "injected": kept(injected) if injected is not None else None,
        "error": None,
    }
    both = {**messages, **changes}
    return receipt(name, both.pop("outcome"), **both)


def again(
    receipts: list[ScriptReceipt],
    then: Values,
    now: Values,
    *,
    candidates: tuple[Any, ...] = (),
    override_to: str | None = None,
    erased: bool = False,
) -> ReplayedScripts:
    """Return the replay of a spawn with these receipts."""
    resolved = ScriptsResolved(receipts=tuple(receipts), candidates=candidates)
    events: list[Any] = [requested(), resolved]
    if override_to is not None:
        overridden = {"from_agent_id": "main", "to_agent_id": override_to}
        events.append(AgentOverridden(candidates=candidates, **overridden))
    steps = [StreamEvent("", event, stamp(at)) for at, event in enumerate(events, 1)]
    record = recorded_decision(steps)
    change = change_of(then, now).agent("main").scripts
    needed = outputs_needed(record, change)
    texts = {} if erased else {item.id: TEXTS[item.id] for item in needed if item.id in TEXTS}
    return replay_scripts(record, change, texts)


class Replay(NamedTuple):
    """A row: outputs, the file then and now, and the expected result."""

    receipts: list[ScriptReceipt]
    then: Values
    now: Values
    expected: str


def said(found: ReplayedScripts) -> str:
    """Return the text and place of each script: `a^one b_two` is before and after the task."""
    return " ".join(
        contribution.script_id
        + {"prepend": "^", "append": "_"}[contribution.position]
        + str(
            contribution.text if contribution.injected is None else TEXTS[contribution.injected.id]
        )
        for contribution in found.contributions
    )


A, B = script("a", priority=2), script("b", priority=1)
BOTH, A_ALONE = configured(A, B), configured(A)
OF_BOTH = [printed("a", "one", "one"), printed("b", "two", "two")]
NOTED = '{"message": "one", "note": "a note"}'
OF_NOTED = [printed("a", NOTED, "one")]
RAW = b'{"message": "one", "note": "a note \xff"}'
IN_BASE64: Values = {"output_encoding": "base64", "output_bytes": len(RAW)}
OF_RAW = [printed("a", base64.b64encode(RAW).decode(), "one", **IN_BASE64)]
READING_NOTE = configured({**A, "returnKey": "note"})
WRONG = {**A, "errorKey": "note"}
STOPPING = configured({**WRONG, "errorHandling": "stop"}, B)
NOTED_BOTH = [*OF_NOTED, OF_BOTH[1]]
CUT_OFF = [printed("a", '{"message": "hal', outcome="failed", exit_code=None, status_code=200)]
TIMED_OUT = [
    receipt("a", "failed", exit_code=None, output=None, duration_ms=1_001),
    receipt("b", "skipped", output=None, duration_ms=0),
]
ONE_SECOND_OF_A = configured(A, scriptsTotalSeconds=1)
ONE_SECOND = configured(A, B, scriptsTotalSeconds=1)

SLOW, CUT = script("slow", priority=9), script("cut", priority=5)
SECONDS = configured(SLOW, CUT, scriptsTotalSeconds=3)
FAILED: Values = {"outcome": "failed", "duration_ms": 990}
OF_SLOW = printed("slow", "", duration_ms=2_000)
SHORT = [OF_SLOW, printed("cut", "", exit_code=None, **FAILED)]
CUT_ALONE = configured(CUT, scriptsTotalSeconds=3)

SAID: dict[str, Replay] = {
    "return key, bytes": Replay(OF_RAW, A_ALONE, READING_NOTE, "a^a note \ufffd"),
    "error now stops the rest": Replay(NOTED_BOTH, BOTH, STOPPING, ""),
    "answer that broke off": Replay(
        CUT_OFF, A_ALONE, configured({**A, "returnKey": "message"}), ""
    ),
    "no error now": Replay(
        [printed("a", NOTED, outcome="failed")], configured(WRONG), A_ALONE, "a^one"
    ),
    "all time was used, and would be again": Replay(
        TIMED_OUT, ONE_SECOND, configured(A, B, agents=("another",), scriptsTotalSeconds=1), ""
    ),
    "failed with time left": Replay(
        [OF_SLOW, printed("cut", "", outcome="failed", exit_code=1, duration_ms=20)],
        SECONDS,
        CUT_ALONE,
        "",
    ),
    "no JSON": Replay([OF_SLOW, printed("cut", "{", **FAILED)], SECONDS, CUT_ALONE, ""),
    "failed answer, more time for all": Replay(
        [printed("a", "{", status_code=200, **FAILED)],
        ONE_SECOND_OF_A,
        configured(A, scriptsTotalSeconds=30),
        "",
    ),
    "short output, less room": Replay(
        [OF_BOTH[0]],
        configured(A, scriptOutputBytesMax=65_536),
        configured(A, scriptOutputBytesMax=1_024),
        "a^one",
    ),
}


@pytest.mark.parametrize("name", SAID)
def test_output_is_read_again(name: str) -> None:
    receipts, then, now, expected = SAID[name]
    assert said(again(receipts, then, now)) == expected


MAPPED = {**A, "argMap": {"task": "task", "other": "task"}}
OF_MAPPED = configured(MAPPED, B)
CALLED = 'context script "a": its {} changed, so it would be called differently'
SKIPPED = [
    receipt("a", "failed", exit_code=1, output=None),
    receipt("b", "skipped", output=None, duration_ms=0),
]
HALF: Values = {"outcome": "failed", "duration_ms": 2_000, "exit_code": None}
TWO_SECONDS, NINE_SECONDS = (configured({**A, "timeoutSeconds": number}) for number in (2, 9))
UNTOLD = (
    'context script "cut": it may have failed because the total time ran out (scriptsTotalSeconds)'
)
TELLING = {**A, "argMap": {"all": "cfg"}}

MISSING: dict[str, Replay] = {
    "one argument": Replay(
        OF_BOTH,
        OF_MAPPED,
        configured({**A, "argMap": {"label": "label"}}, B),
        CALLED.format("argMap"),
    ),
    "order of arguments": Replay(
        OF_BOTH,
        OF_MAPPED,
        configured({**A, "argMap": {"other": "task", "task": "task"}}, B),
        CALLED.format("argMap"),
    ),
    "new script": Replay(
        [OF_BOTH[0]], A_ALONE, BOTH, 'context script "b": it is new, so there is no recorded output'
    ),
    "skipped, not now": Replay(
        SKIPPED,
        configured({**A, "errorHandling": "stop"}, B),
        BOTH,
        'context script "b": it was not run then',
    ),
    "timeout of a URL": Replay(
        [printed("a", "half", status_code=200, **HALF)],
        TWO_SECONDS,
        NINE_SECONDS,
        "ended by the old one",
    ),
    "more time for all": Replay(
        TIMED_OUT[:1], ONE_SECOND_OF_A, configured(A, scriptsTotalSeconds=30), "scriptsTotalSeconds"
    ),
    "timeout of now": Replay(
        [printed("a", "one", "one", duration_ms=2_000)],
        NINE_SECONDS,
        TWO_SECONDS,
        "ended by the old one",
    ),
    "less time for all": Replay(
        [printed("a", "one", "one", duration_ms=3_000)],
        A_ALONE,
        configured(A, scriptsTotalSeconds=3),
        "they took 3.0 s in total",
    ),
    "time of one that is gone": Replay(SHORT, SECONDS, CUT_ALONE, UNTOLD),
    "long output, less room": Replay(
        [printed("a", "x" * 2_000, "x")],
        configured(A, scriptOutputBytesMax=65_536),
        configured(A, scriptOutputBytesMax=1_024),
        "scriptOutputBytesMax",
    ),
    "told the configuration": Replay(
        [OF_BOTH[0]],
        configured(TELLING),
        configured(TELLING, agents=("another",)),
        "it receives the configuration (cfg)",
    ),
}


def test_decision_is_read_from_its_request_on() -> None:
    with pytest.raises(ValueError, match="a decision is read from its request on"):
        recorded_decision([StreamEvent("", ScriptsResolved(receipts=(), candidates=()), stamp(1))])


@pytest.mark.parametrize("name", MISSING)
def test_script_that_may_say_something_else_is_named(name: str) -> None:
    receipts, then, now, expected = MISSING[name]
    with pytest.raises(NotReplayableError) as missing:
        again(receipts, then, now)
    assert expected in str(missing.value)


ROUTER = script("a", agentIdOverrideKey="agent")
ALONE, WITH_EDITOR = configured(ROUTER), configured(ROUTER, agents=("editor",))
MORE = configured(ROUTER, agents=("editor", "writer"))


@pytest.mark.parametrize(
    ("verdict", "then", "now", "expected"),
    [
        ("not_configured", ALONE, WITH_EDITOR, "editor"),
        ("credentials_missing", WITH_EDITOR, MORE, None),
        ("winner", WITH_EDITOR, ALONE, None),
    ],
)
def test_proposed_agent_is_judged_again(
    verdict: str, then: Values, now: Values, expected: str | None
) -> None:
    routed = [printed("a", '{"agent": "editor"}', candidate="editor")]
    proposed = (candidate("a", "editor", verdict),)
    before = "editor" if verdict == "winner" else None
    found = again(routed, then, now, candidates=proposed, override_to=before)
    assert found.override_to == expected
