"""Preamble from a parent to its child, criterion by criterion, as a real child reads it."""

import json
import sys
from typing import Any

import pytest

from tests.support.servers.configurations import agent, command
from tests.support.servers.server import Serve, Server

pytestmark = pytest.mark.server

OPENING = "[Session Context]\n[Context from parent agent]\n"
CLOSING = "\n\n---\n\n"

# Answers with the word from its parent.
READER = r"""
import sys
told = sys.stdin.read()
head, found, rest = told.partition("[Session Context]\n[Context from parent agent]\n")
context = rest.partition("\n\n---\n\n")[0] if found and not head else "(none)"
print("the word is " + context.rpartition(" ")[2])
"""
# Prints its system prompt and message.
ECHO = r"""
import json, sys
told = json.load(sys.stdin)
print(json.dumps({"system": told["systemPrompt"], "message": told["message"]}))
"""
# Answers with its word, and with all that was said in its session before.
DIARY = r"""
import json, sys
told = json.load(sys.stdin)
before = "".join(open(path).read() for path in told["history"])
word = told["systemPrompt"].partition("\n\n---\n\n")[0].rpartition(" ")[2]
print(json.dumps({"word": word, "before": before}))
"""


@pytest.fixture(scope="module")
def server(serve: Serve) -> Server:
    program = [sys.executable, "-I", "-S", "-c"]
    short = agent("short", command(*program, READER))
    short["subagents"] = {"contextPreambleMaxChars": 40}
    return serve(
        agent("main", default=True),
        agent("reader", command(*program, READER)),
        agent("echo", command(*program, ECHO, input="stdin-json")),
        agent("diary", command(*program, DIARY, input="stdin-json")),
        short,
    )


def announced(server: Server, agent: str, **body: Any) -> dict[str, Any]:
    answer = server.spawn("Say the word.", agentId=agent, **body)
    assert answer.status_code == 201, answer.text
    run = server.run(answer.json()["runId"], "announced")
    assert run["outcome"] == "success", run
    return {**run, "answer": answer.json()}


def prompt(server: Server, run: dict[str, Any]) -> dict[str, Any]:
    return dict(server.http.get(f"/v1/runs/{run['runId']}/prompt").json())


def test_context_is_preamble_of_the_system_prompt(server: Server) -> None:
    run = announced(server, "echo", contextPreamble="Remember the word harbour")
    answer = json.loads(run["resultText"])
    assert answer["system"].startswith(f"{OPENING}Remember the word harbour{CLOSING}")
    assert "harbour" not in answer["message"]
    kept = prompt(server, run)
    assert (kept["systemPrompt"], kept["message"]) == (answer["system"], answer["message"])
    (part,) = [part for part in kept["parts"] if part["source"] == "preamble"]
    assert (part["of"], part["start"]) == ("systemPrompt", 0)


def test_context_is_in_no_history(server: Server) -> None:
    first = announced(server, "diary", contextPreamble="Remember the word harbour")
    assert json.loads(first["resultText"])["word"] == "harbour"
    transcript = server.http.get(f"/v1/runs/{first['runId']}/transcript").json()["items"]
    assert transcript
    assert "Remember" not in json.dumps(transcript)
    sent = server.http.post(f"/v1/runs/{first['runId']}/messages", json={"message": "And now?"})
    assert sent.status_code in (200, 201, 202), sent.text
    later = json.loads(server.run(sent.json()["runId"], "announced")["resultText"])
    assert later["word"] == "harbour", "it stands in front of every prompt of the session"
    assert "harbour" in later["before"], "what the first run said is"
    assert "Remember" not in later["before"]


@pytest.mark.parametrize("text", [None, "", "\u3000\u2028\xa0", "\u200b\ufeff"])
def test_without_context_nothing_is_injected(server: Server, text: str | None) -> None:
    run = announced(server, "reader", **({} if text is None else {"contextPreamble": text}))
    assert run["resultText"] == "the word is (none)"
    kept = prompt(server, run)
    assert "[Session Context]" not in kept["systemPrompt"]
    assert "preamble" not in [part["source"] for part in kept["parts"]]
    assert run["answer"].get("warnings", []) == []


def test_context_is_cut_at_4000_characters(server: Server) -> None:
    whole = "wörd " * 799 + "ended"
    assert len(whole) == 4000
    run = announced(server, "reader", contextPreamble=whole)
    assert prompt(server, run)["systemPrompt"].startswith(f"{OPENING}{whole}{CLOSING}")
    run = announced(server, "reader", contextPreamble=f"{whole}!")
    cut = ("wörd " * 799).rstrip()
    shown = f"{OPENING}{cut}...(truncated){CLOSING}"
    assert prompt(server, run)["systemPrompt"].startswith(shown)


def test_limit_of_context_is_the_agents_own(server: Server) -> None:
    given = "Remember the word harbour " + "and forget " * 10
    run = announced(server, "short", contextPreamble=given)
    kept = "Remember the word harbour and forget and"
    assert f"\n{kept}...(truncated)\n" in prompt(server, run)["systemPrompt"]
    assert run["contextPreamble"] == {"givenCharacters": 136, "keptCharacters": 40, "limit": 40}
    (warning,) = run["answer"]["warnings"]
    assert warning == (
        'contextPreamble has 136 characters, and agent "short" allows 40'
        " (contextPreambleMaxChars): it was cut to the first 40"
    )


def test_answer_shows_that_context_was_used(server: Server) -> None:
    run = announced(server, "reader", contextPreamble="Remember the word harbour")
    assert run["resultText"] == "the word is harbour"
    run = announced(server, "reader", contextPreamble="Remember the word lighthouse")
    assert run["resultText"] == "the word is lighthouse"
