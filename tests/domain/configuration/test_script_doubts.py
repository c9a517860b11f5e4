"""What is doubtful about context scripts, and how many there may be."""

from typing import Any

import pytest
from pydantic import ValidationError

from domain.configuration.configuration import Configuration
from domain.configuration.warnings import script_warnings
from tests.support.builders.loaded_configurations import load_values


def agents(default: list[dict[str, Any]], **own: Any) -> dict[str, Any]:
    scripts = {"defaults": {"subagents": {"contextScripts": {"run": default}}}}
    return {"agents": {**scripts, "list": [{"id": "a", "subagents": {"contextScripts": own}}]}}


def doubtful(**script: Any) -> list[str]:
    values = agents([{"id": "s", "uri": "/x", **script}])
    found = list(script_warnings(Configuration.model_validate(values)))
    assert all(
        one.pointer.startswith("/agents/defaults/subagents/contextScripts/run/0/") for one in found
    )
    return [f"{one.pointer.rpartition('/')[2]} {one.message}" for one in found]


def test_what_is_usual_is_beyond_doubt() -> None:
    for script in (
        {},
        {"format": "arguments", "argMap": {"a": "task"}},
        {"format": "json", "argMap": {"a": "cfg"}},
        {"uri": "https://example.com/", "method": "POST", "argMap": {"a": "cfg"}},
        {"uri": "http://localhost:1/", "format": "arguments"},
        {"uri": "http://127.0.0.1/"},
        {"uri": "http://${HOST}/"},
    ):
        assert doubtful(**script) == []


def test_what_counts_for_nothing_or_has_no_room_is_told() -> None:
    url = "https://example.com/"
    (told,) = doubtful(uri=url, method="put", format="arguments")
    assert told.startswith("format has no effect at a URL that is called with PUT")
    (told,) = doubtful(argMap={"a": "cfg"})
    assert told.endswith('use format "json"')
    (told,) = doubtful(uri=url, argMap={"a": "cfg"})
    assert told.endswith("use method POST")


def test_plain_http_to_another_machine_is_told_for_the_agents_own_too() -> None:
    assert doubtful(uri="HTTP://example.com/")[0].startswith("uri is plain http to another")
    values = agents([], run=[{"id": "s", "uri": "http://10.0.0.1/"}])
    (found,) = script_warnings(Configuration.model_validate(values))
    assert found.pointer == "/agents/list/0/subagents/contextScripts/run/0/uri"
    assert [str(one) for one in load_values(values).warnings if "plain http" in str(one)]


def several(count: int, begin: str = "s") -> list[dict[str, Any]]:
    return [{"id": f"{begin}{number}", "uri": "/x"} for number in range(count)]


def test_more_than_fifty_scripts_of_an_agent_are_a_mistake_that_names_it() -> None:
    values = agents(several(30), run=several(27, "own"))
    with pytest.raises(Exception, match="57 scripts would run") as caught:
        load_values(values)
    assert str(caught.value) == (
        "config: agents.list[0].subagents.contextScripts: 57 scripts would run for agent"
        ' "a", and at most 50 may; ignore some of the defaults'
    )


def test_fifty_scripts_may_run_and_what_is_ignored_does_not_count() -> None:
    values = agents(several(50), run=several(5, "own"), ignore=[f"s{n}" for n in range(5)])
    configuration = Configuration.model_validate(values)
    assert len(configuration.effective_agent("a").context_scripts) == 50
    replaced = Configuration.model_validate(agents(several(50), run=several(50)))
    assert len(replaced.effective_agent("a").context_scripts) == 50


def test_a_list_of_more_than_fifty_is_a_mistake() -> None:
    with pytest.raises(ValidationError):
        Configuration.model_validate(agents(several(51)))


@pytest.mark.parametrize("method", ["OPTIONS", "TRACE", "CONNECT", "QUERY", "GE T"])
def test_a_method_that_is_not_known_is_a_mistake(method: str) -> None:
    values = agents([{"id": "s", "uri": "https://h/", "method": method}])
    with pytest.raises(ValidationError, match="must be GET, DELETE or HEAD, or POST, PUT or PATCH"):
        Configuration.model_validate(values)
