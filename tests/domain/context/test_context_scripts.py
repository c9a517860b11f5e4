"""Context scripts: their arguments, their output, and the agent that they name."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from application.context.scripts import read_finished, script_receipt
from application.log.texts import TextStore
from application.ports.scripts import ScriptFinished
from domain.configuration.context_scripts import ContextScript
from domain.context.agent_override import OverrideCandidate, choose_override, log_line
from domain.context.script_output import ScriptReading, encode_output, read_script_output
from domain.context.script_request import (
    URL_BYTES_MAX,
    ArgumentsTooLongError,
    SpawnVariables,
    argument_items,
    json_input,
    request_body,
    request_url,
)
from domain.values.json_text import compact_json
from tests.support.builders.scripts import raw_output, reading_again
from tests.support.builders.storytelling import run_id

# Input of a context script about the spawn.

VARIABLES = SpawnVariables(
    target_agent_id="steward",
    task='Review "it"; $(rm -rf /)\nthen stop',
    requester_agent_id="main",
    requester_session_key="agent:main:main",
    cleanup="keep",
    cfg={"agents": {"list": [{"id": "main"}]}},
)
ALL = {
    "agent": "targetAgentId",
    "task": "task",
    "tag": "label",
    "spawner": "requesterAgentId",
    "key": "requesterSessionKey",
    "cleanup": "cleanup",
    "cfg": "cfg",
}


def test_arguments_are_one_item_each_without_quotes() -> None:
    assert argument_items(ALL, VARIABLES) == (
        "agent=steward",
        'task=Review "it"; $(rm -rf /)\nthen stop',
        "tag=",
        "spawner=main",
        "key=agent:main:main",
        "cleanup=keep",
        'cfg={"agents":{"list":[{"id":"main"}]}}',
    )


def test_json_has_the_same_names_and_no_undefined_ones() -> None:
    assert json.loads(json_input(ALL, VARIABLES)) == {
        "agent": "steward",
        "task": VARIABLES.task,
        "spawner": "main",
        "key": "agent:main:main",
        "cleanup": "keep",
        "cfg": {"agents": {"list": [{"id": "main"}]}},
    }


def test_argument_too_long_is_refused_with_advice() -> None:
    long = SpawnVariables(target_agent_id="a", task="ü" * 70_000, requester_agent_id="b")
    with pytest.raises(ArgumentsTooLongError, match=r'"task".*format "json"'):
        argument_items({"task": "task"}, long)
    fits = SpawnVariables(target_agent_id="a", task="x" * 131_069, requester_agent_id="b")
    assert len(argument_items({"t": "task"}, fits)[0]) == 131_071
    with pytest.raises(ArgumentsTooLongError, match="131072 bytes"):
        argument_items({"tt": "task"}, fits)
    wide = SpawnVariables(target_agent_id="a", task="x" * 130_000, requester_agent_id="b")
    with pytest.raises(ArgumentsTooLongError, match="in total"):
        argument_items({f"t{number}": "task" for number in range(9)}, wide)


def test_arguments_and_urls_have_limits() -> None:
    def spawn(task: str, label: str = "") -> SpawnVariables:
        return SpawnVariables(
            target_agent_id="a", task=task, requester_agent_id="b", label=label or None
        )

    eight = {str(number): "task" for number in range(8)} | {"8": "label"}
    longest = "x" * (131_071 - len("0="))
    assert len(argument_items(eight, spawn(longest, "x" * 6))) == 9
    with pytest.raises(ArgumentsTooLongError, match="1048577 bytes in total"):
        argument_items(eight, spawn(longest, "x" * 7))

    def url(task: str) -> str:
        return request_url("http://h/#end", "GET", {"t": "task"}, spawn(task))

    room = URL_BYTES_MAX - len("http://h/?t=")
    assert url("x" * room) == "http://h/?t=" + "x" * room
    for long in ("x" * (room + 1), "é" * (room // 6 + 1)):
        with pytest.raises(ArgumentsTooLongError, match="more than 8192 bytes; use method POST"):
            url(long)
    assert request_body("POST", {"t": "task"}, spawn("x")) == '{"t":"x"}'
    assert request_body("POST", {}, spawn("x")) is request_body("GET", {"t": "task"}, spawn("x"))


# How the output of a context script is read.


def read(output: object, **keys: str) -> ScriptReading:
    text = output if isinstance(output, str) else json.dumps(output)
    return read_script_output(script_id="s", text=text, **keys)


@pytest.mark.parametrize(
    ("output", "content"),
    [
        ({"message": "m", "content": "c", "text": "t", "result": "r"}, "m"),
        ({"content": "c", "text": "t", "result": "r"}, "c"),
        ({"text": "t", "result": "r"}, "t"),
        ({"result": "r"}, "r"),
        ({"foo": 1}, '{"foo":1}'),
    ],
)
def test_content_is_found_under_the_usual_keys(output: object, content: str) -> None:
    assert read(output).content == content


def test_json_list_without_return_key_is_content() -> None:
    assert read("[1, 2]\n") == ScriptReading(content="[1, 2]\n")
    assert read('[{"error": "x"}]', error_key="error").content == '[{"error": "x"}]'


@pytest.mark.parametrize("output", [{"message": "m"}, [], [{"data": "d"}]])
def test_missing_return_key_is_an_error(output: object) -> None:
    assert read(output, return_key="data") == ScriptReading(
        error='Script s: returnKey "data" not found in response'
    )


@pytest.mark.parametrize(
    ("output", "error"),
    [
        ({"err": "z", "error": "y"}, "Script s returned error (err): z"),
        ({"error": "boom"}, "Script s returned error: boom"),
        ({"error": {"type": "t"}}, "Script s returned error: t"),
        ({"error": {"code": 7}}, 'Script s returned error: {"code":7}'),
        ({"error": ["a"]}, 'Script s returned error: ["a"]'),
        ({"errors": ["a", {"message": "b"}, {"c": 1}]}, 'Script s returned errors: a; b; {"c":1}'),
        ({"status": "error", "message": "m"}, "Script s returned error: m"),
        ({"status": "error"}, "Script s returned error: status=error"),
        ({"ok": False}, "Script s returned error: ok=false"),
        ({"error": "first", "errors": ["second"], "ok": False}, "Script s returned error: first"),
    ],
)
def test_reported_error_is_an_error(output: object, error: str) -> None:
    assert read(output, error_key="err", return_key="message") == ScriptReading(error=error)


@pytest.mark.parametrize("extra", [{"error": ""}, {"error": []}, {"errors": []}, {"ok": True}])
def test_what_only_looks_like_an_error_is_none(extra: dict[str, object]) -> None:
    assert read({"message": "m", **extra}, error_key="err") == ScriptReading(content="m")


def test_huge_error_is_cut() -> None:
    error = read({"error": "x" * 100_000}).error
    assert error is not None
    assert len(error) == 2000


@settings(deadline=None)
@given(st.text(max_size=80) | st.from_regex(r'\{"(error|message|to|ok|a)":[\[\]{}0-9a"e.,:-]*\}'))
def test_no_output_is_too_odd_to_be_read(output: str) -> None:
    reading = read(output, return_key="a", error_key="e", agent_id_override_key="to")
    assert reading.error is None or (reading.content is None and reading.override is None)
    assert reading.content is None or reading.content.strip()


# Choice among proposed agents, and verdicts on the others.

CONFIGURED = frozenset({"main", "agent-x", "beta"})


def proposal(script_id: str, priority: float, proposed: str) -> OverrideCandidate:
    return OverrideCandidate(script_id=script_id, priority=priority, proposed=proposed)


def test_highest_priority_that_is_configured_wins() -> None:
    choice = choose_override(
        "steward",
        [
            proposal("low", 1, "beta"),
            proposal("ghost", 90, "nobody"),
            proposal("bad", 80, "Agent not found: xyz"),
            proposal("high", 50, "Agent-X"),
        ],
        CONFIGURED,
    )
    assert choice.agent_id == "agent-x"
    assert choice.is_override
    assert [
        (candidate.script_id, candidate.verdict, candidate.reason, candidate.agent_id)
        for candidate in choice.candidates
    ] == [
        ("ghost", "invalid", "not_configured", "nobody"),
        ("bad", "invalid", "invalid_agent_id", None),
        ("high", "winner", "configured", "agent-x"),
        ("low", "valid", "lower_priority", "beta"),
    ]


def test_confirming_script_wins_over_lower_priorities() -> None:
    candidates = [proposal("confirms", 2, "main"), proposal("other", 1, "beta")]
    choice = choose_override("main", candidates, CONFIGURED)
    assert choice.agent_id == "main"
    assert not choice.is_override
    assert choice.winner is not None
    assert choice.winner.reason == "same_as_requested"


def test_requested_agent_is_not_confirmed_without_its_credentials() -> None:
    choice = choose_override("main", [proposal("a", 1, "main")], CONFIGURED, lambda _: False)
    assert (choice.agent_id, choice.winner, choice.is_override) == ("main", None, False)
    assert choice.candidates[0].reason == "credentials_missing"


def test_log_line_names_every_candidate_and_the_winner() -> None:
    candidates = [proposal("script-a", 100, "agent-x"), proposal("script-b", 50.5, "agent-y")]
    assert log_line(choose_override("s", candidates, CONFIGURED)) == (
        "[context-script] agentIdOverride candidates: [script-a→agent-x (pri:100 ✓), "
        "script-b→agent-y (pri:50.5 ✗)] → winner: script-a→agent-x"
    )


def test_log_line_says_when_none_is_valid() -> None:
    choice = choose_override("s", [proposal("a", 0, "x\ny")], CONFIGURED)
    assert log_line(choice) == (
        "[context-script] agentIdOverride candidates: [a→x y (pri:0 ✗)] → none valid"
    )
    assert log_line(choose_override("s", [], CONFIGURED)) is None


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(-3, 3) | st.floats(-3, 3), st.sampled_from(["main", "beta", "no", "?"])
        ),
        max_size=6,
    )
)
def test_nobody_configured_stands_above_the_winner(proposals: list[tuple[float, str]]) -> None:
    candidates = [proposal(str(at), *item) for at, item in enumerate(proposals)]
    choice = choose_override("requested", candidates, CONFIGURED)
    configured = [candidate for candidate in candidates if candidate.proposed in CONFIGURED]
    assert len(choice.candidates) == len(candidates)
    if choice.winner is None:
        assert not configured
    else:
        best = max(configured, key=lambda candidate: candidate.priority)
        assert choice.winner.script_id == best.script_id


# A stored script output is read with the same result.

WORDS = st.sampled_from(["message", "error", "agent", "errors", "ok", "status", "x", "é", ""])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=8,
)
OUTPUTS = st.binary(max_size=60) | (st.text(max_size=40) | VALUES.map(compact_json)).map(
    lambda text: text.encode("utf-8", "replace")
)
SCRIPT = ContextScript.model_validate(
    {"id": "s", "uri": "/x", "returnKey": "message", "errorKey": "x", "agentIdOverrideKey": "agent"}
)


@given(OUTPUTS, st.sampled_from([0, 3]))
def test_what_is_kept_is_read_as_it_was(raw: bytes, code: int) -> None:
    finished = ScriptFinished(raw=raw, exit_code=code, error="it failed" if code else None)
    text_store = TextStore(run_id(1), b"key", lambda: run_id(2))
    reading = read_finished(SCRIPT, finished)
    kept = script_receipt(SCRIPT, finished, reading, text_store)
    texts = {content.ref.hmac: content.text for content in text_store.contents}
    assert kept.output_bytes == len(raw)
    if kept.output is None:
        assert raw == b""
        return
    text = texts[kept.output.hmac]
    assert raw_output(text, kept.output_encoding) == raw
    assert kept.output_hmac == text_store.hash(raw)
    error = texts[kept.error.hmac] if kept.error else None
    assert reading_again(kept, SCRIPT, text, error) == (None if code else reading)


@given(st.binary(max_size=40))
def test_output_is_kept_as_text_or_in_base64(raw: bytes) -> None:
    text, encoding = encode_output(raw)
    assert "\0" not in text
    text.encode()
    assert raw_output(text, encoding) == raw
