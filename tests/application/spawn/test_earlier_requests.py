"""Request of an earlier run from its record, as it would be sent today, with changes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from application.commands.resolve_request import resolve_request
from application.log.envelope import Actor
from application.spawn.request import spawn_command
from application.spawn.respawn import CannotRespawn, OriginalErased, earlier_request
from domain.configuration.configuration import Configuration
from domain.run.events import SpawnRequested
from domain.run.state import Run
from domain.spawn.admission import policy_of
from domain.spawn.decide import request_spawns
from domain.spawn.dependencies import DependencyRequest, dependencies_text
from domain.spawn.request import AttachmentsVerdict, RequestSpawn, SpawnRequest
from domain.values import rules
from domain.values.json_text import merge_patch
from domain.values.record import ContentRef
from tests.support.builders.configurations import PlacedConfigurations
from tests.support.builders.decided_spawns import Ids
from tests.support.builders.family_log import FamilyLog
from tests.support.builders.storytelling import ref
from tests.support.tiers import examples

KEY = "agent:main:main"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)
WORDS = st.text(st.characters(min_codepoint=32, max_codepoint=0x17F), max_size=12)
TEXTS = WORDS.filter(lambda text: bool(text.strip()))
PRINTED = TEXTS.filter(str.isprintable)
REQUESTERS = st.fixed_dictionaries(
    {"sessionKey": st.just(KEY)},
    optional={
        "channel": PRINTED,
        "to": PRINTED,
        "threadId": PRINTED | st.integers(0, 9),
        "memberRoleIds": st.lists(PRINTED, max_size=2),
        "workspaceDir": st.sampled_from(["/srv", "/srv/work", " "]),
        "sandboxed": st.booleans(),
        "activeModel": st.sampled_from(["small/one", "large/two"]),
        "activeThinking": st.sampled_from(["high", "Low"]),
    },
)
BODIES = st.fixed_dictionaries(
    {"requester": REQUESTERS, "task": TEXTS},
    optional={
        "label": PRINTED,
        "agentId": st.sampled_from(["main", "Steward", "no agent!", " "]),
        "model": st.sampled_from(["small/one", "two words", " big/three ", "\u00e9"]),
        "thinking": st.sampled_from(["high", "a lot", "off"]),
        "runTimeoutSeconds": st.sampled_from([0, 1.5, 90, -1]),
        "thread": st.booleans(),
        "mode": st.sampled_from(["run", "session", None]),
        "cleanup": st.sampled_from(["delete", "keep", None]),
        "sandbox": st.sampled_from(["inherit", "require"]),
        "context": st.sampled_from(["isolated", "fork", None]),
        "lightContext": st.booleans(),
        "expectsCompletionMessage": st.booleans(),
        "contextPreamble": WORDS,
        "sharedContext": st.dictionaries(st.sampled_from(["a", "b", "c d"]), JSON, max_size=3),
        "sharedContextScope": st.sampled_from(["family", "child"]),
    },
)


def command_of(body: dict[str, Any], ids: Ids | None = None) -> RequestSpawn:
    configurations = PlacedConfigurations(Path("/nowhere"))
    configurations.read({"agents": {"list": [{"id": "main"}, {"id": "steward"}]}})
    pinned = configurations.current()
    request = resolve_request(SpawnRequest.model_validate(body), pinned.configuration)
    return spawn_command(request, Actor(kind="token"), pinned, ids or Ids(), "server-1")


def recorded(
    body: dict[str, Any], **changes: Any
) -> tuple[Run, SpawnRequested, dict[ContentRef, str]]:
    configurations = PlacedConfigurations(Path("/nowhere"))
    configurations.read({"agents": {"list": [{"id": "main"}, {"id": "steward"}]}})
    command, log = replace(command_of(body), **changes), FamilyLog()
    texts: dict[ContentRef, str] = {}

    def store(kind: str, text: str) -> ContentRef:
        kept = ref(f"{kind}: {len(texts)}")
        texts[kept] = text
        return kept

    policy = policy_of(configurations.current().configuration, "main")
    answered = request_spawns({}, {}, [(command, store)], policy)
    log.names[command.run_id] = "it"
    log.record(answered.changes)
    (event,) = [event for _, event in answered.changes if isinstance(event, SpawnRequested)]
    return log.run("it"), event, texts


def by_id(texts: dict[ContentRef, str]) -> dict[Any, str]:
    return {ref.id: text for ref, text in texts.items()}


@given(BODIES)
@examples(200)
def test_record_says_all_that_was_asked(body: dict[str, Any]) -> None:
    run, event, texts = recorded(body)
    earlier = earlier_request(run, event, by_id(texts))
    members, replaced = earlier.changed_by({}, KEY, with_transcript=False)
    assert replaced == ()
    then, now = command_of(body), command_of(members)
    if then.target_agent_id is not None and then.agent_id_argument is not None:
        # A name is recorded in its canonical form.
        then = replace(then, agent_id_argument=then.target_agent_id)
    if run.stage != "refused" and then.shared is not None:
        # Its family has it already.
        then = replace(then, shared=replace(then.shared, scope="child"))
    assert now == then


@given(BODIES, st.dictionaries(st.sampled_from(["task", "label", "requester", "x"]), JSON))
def test_changes_are_a_merge_patch(body: dict[str, Any], changes: dict[str, Any]) -> None:
    run, event, texts = recorded(body)
    earlier = earlier_request(run, event, by_id(texts))
    members, replaced = earlier.changed_by(changes, KEY, with_transcript=False)
    expected = merge_patch(earlier.members, changes)
    assert isinstance(expected, dict)
    requester = expected.get("requester")
    if isinstance(requester, dict) and isinstance(requester.get("sessionKey"), str):
        requester["sessionKey"] = KEY
    assert members == expected
    assert set(replaced) <= set(changes)
    for name in earlier.members.keys() | members.keys():
        assert (name in replaced) == (earlier.members.get(name) != members.get(name))


def test_other_session_gets_nothing_of_the_first() -> None:
    requester = {"sessionKey": KEY, "channel": "tides", "activeModel": "small/one"}
    run, event, texts = recorded({"requester": requester, "task": "look", "context": "fork"})
    earlier = earlier_request(run, event, by_id(texts))
    second_request = {"requester": {"sessionKey": "Agent:Main:Other", "to": "C2"}}
    members, replaced = earlier.changed_by(second_request, "agent:main:other", with_transcript=True)
    assert members["requester"] == {"sessionKey": "agent:main:other", "to": "C2"}
    # The transcript replaces the context that the request named.
    assert "context" not in members
    assert replaced == ("requester",)
    assert earlier.members["requester"]["channel"] == "tides"


def test_files_are_given_anew_or_left_out() -> None:
    files = AttachmentsVerdict(count=1, manifest="[]")
    body = {"requester": {"sessionKey": KEY}, "task": "look"}
    run, event, texts = recorded(body, attachments=files)
    earlier = earlier_request(run, event, by_id(texts))
    with pytest.raises(CannotRespawn, match="are not stored: set attachments"):
        earlier.changed_by({"task": "x"}, KEY, with_transcript=False)
    _, replaced = earlier.changed_by({"attachments": None}, KEY, with_transcript=False)
    assert replaced == ("attachments",)


NAMED = (
    DependencyRequest("a", "dependsOn", "ended"),
    DependencyRequest("b", "dependsOn"),
    DependencyRequest("c", "chainAfter"),
    DependencyRequest("d", "reference"),
)


def test_unresolved_names_are_given_again() -> None:
    body = {"requester": {"sessionKey": KEY}, "task": "look", "sharedContext": {"k": 1}}
    unbound = rules.DEPENDENCY_UNKNOWN.refusal("no run is called b")
    run, event, texts = recorded(
        body, unbound=unbound, dependencies_argument=dependencies_text(NAMED)
    )
    earlier = earlier_request(run, event, by_id(texts))
    members, replaced = earlier.changed_by({}, KEY, with_transcript=False)
    assert replaced == ()
    spawn = SpawnRequest.model_validate(members)
    assert resolve_request(spawn, Configuration()).dependencies == NAMED
    assert members["sharedContext"] == {"k": 1, "$d": "reference"}
    assert event.dependencies_argument is not None
    left = {ref.id: text for ref, text in texts.items() if ref != event.dependencies_argument}
    with pytest.raises(OriginalErased, match="were erased"):
        earlier_request(run, event, left)


def test_request_without_texts_is_refused() -> None:
    body = {"requester": {"sessionKey": KEY, "to": "C1"}, "task": "look", "contextPreamble": "hm"}
    run, event, texts = recorded(body)
    for kept in texts:
        left = {ref.id: text for ref, text in texts.items() if ref != kept}
        if kept in (event.task, event.preamble, event.requester.origin):
            with pytest.raises(OriginalErased, match="were erased"):
                earlier_request(run, event, left)
