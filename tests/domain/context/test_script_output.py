"""How the output of a context script is read."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.context.script_output import ScriptReading, read_script_output


def read(output: object, **keys: str) -> ScriptReading:
    text = output if isinstance(output, str) else json.dumps(output)
    return read_script_output(script_id="s", text=text, **keys)


@pytest.mark.parametrize("output", ["", "   ", "\n\t"])
def test_blank_output_says_nothing(output: str) -> None:
    assert read(output, return_key="data") == ScriptReading()


@pytest.mark.parametrize(
    "output",
    ["## Identity\n", '"text"', "42", "null", "{'a': 1}", '{"a": NaN}', "{" * 9000],
)
def test_what_is_no_json_object_is_content_as_it_stands(output: str) -> None:
    assert read(output, return_key="data") == ScriptReading(content=output)


@pytest.mark.parametrize(
    ("output", "content"),
    [
        ({"message": "m", "content": "c"}, "m"),
        ({"content": "c", "text": "t"}, "c"),
        ({"text": "t", "result": "r"}, "t"),
        ({"result": "r"}, "r"),
        ({"message": None, "text": "t"}, "t"),
        ({"message": {"a": 1}}, '{"a":1}'),
        ({"foo": 1}, '{"foo":1}'),
        ({"foo": "ü"}, '{"foo":"ü"}'),
        ({}, "{}"),
        ({"message": ""}, None),
    ],
)
def test_content_is_found_under_the_usual_keys(output: object, content: str | None) -> None:
    assert read(output) == ScriptReading(content=content)


def test_the_return_key_comes_before_the_usual_keys() -> None:
    assert read({"data": {"a": 1}, "message": "m"}, return_key="data").content == '{"a":1}'
    assert read({"data": "d", "message": "m"}, return_key="data").content == "d"
    assert read({"data": None, "message": "m"}, return_key="data") == ScriptReading()


def test_a_json_list_is_content_where_no_key_is_looked_for() -> None:
    assert read("[1, 2]\n") == ScriptReading(content="[1, 2]\n")
    assert read('[{"error": "x"}]', error_key="error").content == '[{"error": "x"}]'


@pytest.mark.parametrize("output", [{"message": "m"}, [], [{"data": "d"}]])
def test_a_missing_return_key_is_an_error(output: object) -> None:
    assert read(output, return_key="data") == ScriptReading(
        error='Script s: returnKey "data" not found in response'
    )


@pytest.mark.parametrize(
    ("output", "error"),
    [
        ({"err": "z", "error": "y"}, "Script s returned error (err): z"),
        ({"err": {"a": 1}}, 'Script s returned error (err): {"a":1}'),
        ({"err": []}, "Script s returned error (err): []"),
        ({"error": "boom"}, "Script s returned error: boom"),
        ({"error": {"message": "m", "type": "t"}}, "Script s returned error: m"),
        ({"error": {"type": "t"}}, "Script s returned error: t"),
        ({"error": {"code": 7}}, 'Script s returned error: {"code":7}'),
        ({"error": ["a"]}, 'Script s returned error: ["a"]'),
        ({"errors": ["a", {"message": "b"}, {"c": 1}]}, 'Script s returned errors: a; b; {"c":1}'),
        ({"status": "error", "message": "m"}, "Script s returned error: m"),
        ({"status": "error"}, "Script s returned error: status=error"),
        ({"ok": False, "message": "m"}, "Script s returned error: m"),
        ({"ok": False}, "Script s returned error: ok=false"),
        ({"error": "first", "errors": ["second"], "ok": False}, "Script s returned error: first"),
        ({"errors": ["first"], "status": "error"}, "Script s returned errors: first"),
    ],
)
def test_a_reported_error_is_an_error(output: object, error: str) -> None:
    assert read(output, error_key="err", return_key="message") == ScriptReading(error=error)


@pytest.mark.parametrize(
    "extra",
    [
        {"error": ""},
        {"error": []},
        {"error": None},
        {"errors": []},
        {"status": "ok"},
        {"ok": True},
        {"ok": None},
    ],
)
def test_what_only_looks_like_an_error_is_none(extra: dict[str, object]) -> None:
    assert read({"message": "m", **extra}, error_key="err") == ScriptReading(content="m")


@pytest.mark.parametrize(
    ("value", "shown"), [(None, "null"), (False, "false"), ("", ""), (0, "0"), ([], "[]")]
)
def test_a_key_for_errors_that_is_there_is_an_error_whatever_its_value(
    value: object, shown: str
) -> None:
    reading = read({"err": value, "message": "m"}, error_key="err")
    assert reading.content is None
    assert reading.error == f"Script s returned error (err): {shown}".rstrip()


@pytest.mark.parametrize(("value", "override"), [("  beta ", "beta"), ("  ", None), (5, None)])
def test_a_candidate_is_a_trimmed_string(value: object, override: str | None) -> None:
    reading = read({"message": "m", "to": value}, agent_id_override_key="to")
    assert reading == ScriptReading(content="m", override=override)


def test_a_candidate_may_come_without_content() -> None:
    reading = read({"message": "", "to": "beta"}, agent_id_override_key="to")
    assert reading == ScriptReading(override="beta")


@pytest.mark.parametrize("output", [{"to": "beta", "error": "x"}, {"to": "beta", "message": "m"}])
def test_an_error_voids_the_candidate(output: object) -> None:
    reading = read(output, agent_id_override_key="to", return_key="data")
    assert reading.error is not None
    assert reading.override is None
    assert reading.content is None


def test_a_huge_error_is_cut() -> None:
    error = read({"error": "x" * 100_000}).error
    assert error is not None
    assert len(error) == 2000


def test_what_no_store_takes_is_replaced() -> None:
    assert read('{"message": "a\\u0000b\\ud800"}').content == "a\ufffdb\ufffd"


@settings(deadline=None)
@given(st.text(max_size=80) | st.from_regex(r'\{"(error|message|to|ok|a)":[\[\]{}0-9a"e.,:-]*\}'))
def test_no_output_is_too_odd_to_be_read(output: str) -> None:
    reading = read(output, return_key="a", error_key="e", agent_id_override_key="to")
    assert reading.error is None or (reading.content is None and reading.override is None)
    assert reading.content is None or reading.content.strip()
