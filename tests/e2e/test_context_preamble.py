"""The context that a parent hands over: a real child reads it, and its history is without it."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.data_directories import copied, new_place
from tests.support.running_server import RunningServer, configuration, scripted

pytestmark = pytest.mark.slow

# Answers with the word that its parent told it.
_READER = """
import sys
told = sys.stdin.read()
head, found, rest = told.partition("[Session Context]\\n[Context from parent agent]\\n")
context = rest.partition("\\n\\n---\\n\\n")[0] if found and not head else "(none)"
print("the word is " + context.rpartition(" ")[2])
"""


@pytest.fixture(scope="module")
def server(made_data_dir: Path) -> Iterator[RunningServer]:
    command = [sys.executable, "-I", "-S", "-c", _READER]
    reader: dict[str, Any] = {
        "id": "reader",
        "runtime": {"type": "command", "command": command, "input": "stdin-text"},
        "subagents": {"contextPreambleMaxChars": 40},
    }
    with new_place() as place:
        data = copied(made_data_dir, place / "data")
        config = configuration({**scripted("main"), "default": True}, reader)
        with RunningServer(data, config) as running:
            yield running


def announced(server: RunningServer, **body: Any) -> dict[str, Any]:
    answer = server.spawn("Say the word.", agentId="reader", **body)
    assert answer.status_code == 201, answer.text
    return {**server.run(answer.json()["runId"], "announced"), "answer": answer.json()}


def test_an_answer_shows_that_the_context_was_used(server: RunningServer) -> None:
    run = announced(server, contextPreamble="Remember the word harbour")
    assert run["resultText"] == "the word is harbour"


def test_it_stands_in_the_system_prompt_and_in_no_history(server: RunningServer) -> None:
    run = announced(server, contextPreamble="Remember the word harbour")
    prompt = server.http.get(f"/v1/runs/{run['runId']}/prompt").json()
    assert prompt["systemPrompt"].startswith(
        "[Session Context]\n[Context from parent agent]\nRemember the word harbour\n\n---\n\n"
    )
    assert "harbour" not in prompt["message"]
    transcript = server.http.get(f"/v1/runs/{run['runId']}/transcript").json()
    said = [str(one) for one in transcript["items"] if "Remember" in str(one)]
    assert (said, len(transcript["items"]) > 0) == ([], True)


@pytest.mark.parametrize("given", [{}, {"contextPreamble": ""}, {"contextPreamble": " \n\t"}])
def test_nothing_is_injected_without_it(server: RunningServer, given: dict[str, str]) -> None:
    run = announced(server, **given)
    assert run["resultText"] == "the word is (none)"
    prompt = server.http.get(f"/v1/runs/{run['runId']}/prompt").json()
    assert "[Session Context]" not in prompt["systemPrompt"]
    assert run["answer"].get("warnings", []) == []


def test_a_long_one_is_cut_at_the_limit_of_the_agent_and_both_sizes_are_on_record(
    server: RunningServer,
) -> None:
    run = announced(server, contextPreamble="Remember the word harbour " + "and forget " * 10)
    prompt = server.http.get(f"/v1/runs/{run['runId']}/prompt").json()
    assert "\nRemember the word harbour and forget and...(truncated)\n" in prompt["systemPrompt"]
    assert run["contextPreamble"] == {"givenCharacters": 136, "keptCharacters": 40, "limit": 40}
    (warning,) = run["answer"]["warnings"]
    assert warning == (
        'contextPreamble has 136 characters and agent "reader" takes 40 (contextPreambleMaxChars):'
        " the first 40 were handed over"
    )
    decisions = server.http.get(f"/v1/runs/{run['runId']}/explain").json()["decisions"]
    (told,) = [one for one in decisions if one["rule"] == "preamble"]
    assert told["compared"] == {
        "givenCharacters": 136,
        "givenBytes": 136,
        "keptCharacters": 40,
        "keptBytes": 40,
        "charactersMax": 40,
    }
