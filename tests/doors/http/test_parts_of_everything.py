"""The parts of a prompt are all that a child was given, from whatever sources it came."""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from domain.context_preamble import truncated_preamble
from domain.json_text import compact_json
from tests.support.sourced_spawns import (
    PREAMBLE_CHARACTERS_MAX,
    SCRIPTS,
    Sourced,
    SourcingHouse,
    sourced,
    sourcing_house,
)

pytestmark = pytest.mark.slow

EVERYTHING = Sourced(
    task="Plan the harbour",
    preamble="Remember the word harbour, and the sea that is behind it, and all of its ships",
    scripts={"first": "You are", "second": "the steward.", "third": "Mind", "fourth": "the gap."},
    bootstrap={"AGENTS.md": "Count the boats. ⚓", "TOOLS.md": "The crane is called Emma."},
    attached=("one", "two"),
    forks=True,
    before={"goal": "a harbour", "size": 1},
    shared={"size": 2, "more": ["x"]},
    stays=True,
    takes_json=True,
    message="And now?",
)


@pytest.fixture(scope="module")
def sourcing() -> Iterator[SourcingHouse]:
    with sourcing_house() as house:
        yield house


def stretches(house: SourcingHouse, run: dict[str, Any]) -> list[tuple[str, str]]:
    """The sources of a prompt with their texts, once it is sure that they are all of it, and that
    all of it is what the process got."""
    prompt = house.prompt(run)
    got = house.given(run)
    if run["agentId"] == "json":
        told = json.loads(got)
        assert (told["systemPrompt"], told["message"]) == (
            prompt["systemPrompt"],
            prompt["message"],
        )
    else:
        assert got == f"{prompt['systemPrompt']}\n\n{prompt['message']}".encode()
    found = []
    parts = prompt["parts"]
    for of in ("systemPrompt", "message"):
        whole, at = prompt[of].encode(), 0
        for part in (one for one in parts if one["of"] == of):
            assert part["start"] == at < part["end"]
            at = part["end"]
            stretch = whole[part["start"] : at]
            assert part["sha256"] == hashlib.sha256(stretch).hexdigest()
            found.append((part["source"], stretch.decode()))
        assert at == len(whole)
    assert [one["of"] for one in parts] == sorted((one["of"] for one in parts), reverse=True)
    return found


def sources(asked: Sourced) -> set[str]:
    """Where a prompt comes from that is asked for so, besides what stands in each."""
    return {
        *(["preamble"] if asked.preamble.strip() else []),
        *(["fork"] if asked.forks else []),
        *(f"bootstrap:{name}" for name, text in asked.bootstrap.items() if text.strip()),
        *(["attachments"] if asked.attached else []),
        *(["sharedContext"] if asked.before or asked.shared else []),
        *(f"sharedContext:{key}" for key in asked.before | asked.shared),
    }


EACH = {"role", "rules", "session", "separator"}


def all_is_told(house: SourcingHouse, asked: Sourced) -> None:
    run = house.ran(asked)
    told = stretches(house, run)
    scripts = {f"script:{script_id}" for script_id in asked.scripts}
    assert {source for source, _ in told} == EACH | {"intro", "task"} | scripts | sources(asked)
    by_source = dict(told)
    assert by_source["task"] == asked.task
    for script_id, said in asked.scripts.items():
        assert by_source[f"script:{script_id}"] == f"* {said}".strip()
    ran = [source for source, _ in told if source == "task" or source in scripts]
    before = [f"script:{one}" for one, position in SCRIPTS.items() if position == "prepend"]
    behind = [f"script:{one}" for one, position in SCRIPTS.items() if position == "append"]
    assert ran == [one for one in (*before, "task", *behind) if one in {"task", *scripts}]
    if "preamble" in by_source:
        kept = truncated_preamble(asked.preamble, PREAMBLE_CHARACTERS_MAX)
        assert by_source["preamble"] == f"[Session Context]\n[Context from parent agent]\n{kept}"
    keys = [one.partition(":")[2] for one, _ in told if one.startswith("sharedContext:")]
    assert keys == list(asked.before | asked.shared)
    if asked.takes_json:
        shared = json.loads(house.given(run))["sharedContext"]
        assert compact_json(shared) == compact_json(asked.before | asked.shared)
    if asked.message:
        went_on(house, asked, run)


def went_on(house: SourcingHouse, asked: Sourced, first: dict[str, Any]) -> None:
    told = stretches(house, house.went_on(first, asked.message))
    # Files are removed with the announcement of a child that does not stay.
    gone = set() if asked.stays else {"attachments"}
    assert {source for source, _ in told} == (EACH | {"message"} | sources(asked)) - gone
    assert dict(told)["message"] == asked.message


def test_the_parts_of_a_spawn_with_all_sources_at_once_cover_every_byte(
    sourcing: SourcingHouse,
) -> None:
    assert sources(EVERYTHING) > {"preamble", "fork", "attachments", "sharedContext"}
    all_is_told(sourcing, EVERYTHING)


# Each example is a life of its own, and takes too long to be looked for a smaller one.
@settings(
    max_examples=25,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
@given(sourced)
def test_the_parts_of_every_spawn_cover_every_byte(sourcing: SourcingHouse, asked: Sourced) -> None:
    all_is_told(sourcing, asked)
