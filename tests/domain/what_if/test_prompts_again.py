"""What-if for prompts: which prompt a child would have under another configuration."""

from collections.abc import Collection
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.prompt.run_prompt import compose_run_prompt
from domain.prompt.shared_context import SharedValue
from domain.run.state import Run
from domain.values.shared_values import SharedKey
from domain.what_if.prompt import compare_prompts, prompt_texts_needed
from domain.what_if.verdict import Verdict
from tests.support.builders import run_histories as past
from tests.support.builders.decisions_again import Sent, Spawn, Values, but, limits
from tests.support.builders.script_receipts import receipt
from tests.support.builders.storytelling import ROOT, ref, run_of

BASE = limits("writer", allowAgents=["*"], maxSpawnDepth=2)
WORDS = "so many words " * 20
HERE = '{"channel": "chat", "to": "room:1"}'
SHARED = SharedKey(key="plan", session_key=ROOT, value=ref('"go on"'), position=3)
TOLD = Spawn(
    agent_id="writer",
    preamble=WORDS,
    bootstrap=("always be kind",),
    origin=HERE,
    receipts=(
        receipt("facts", "injected", injected=ref("a fact"), position="append"),
        receipt("front", "injected", injected=ref("in front")),
    ),
)


def at_start(spawn: Spawn, values: Values) -> Run:
    """Return the run when its prompt was composed."""
    return run_of(*spawn.events(values))


def compared(
    spawn: Spawn,
    then: Values,
    now: Values,
    *,
    erased: Collection[str] = (),
    forgotten: Collection[str] = (),
    shared: tuple[SharedKey, ...] = (),
    replaced_words: tuple[str, str] = ("", ""),
) -> Verdict | None:
    """Return the verdict on the composed prompt under the other configuration.

    Args:
        erased: Texts erased since.
        forgotten: Texts that were erased when it was composed.
        said: Replaces the first of two words by the second in the composed prompt.
    """
    record, run = spawn.record(then), at_start(spawn, then)
    assert record.created is not None
    known = {ref(text).id: text for text in ("a fact", "in front", '"go on"')} | spawn.texts.known
    before = {id_: text for id_, text in known.items() if text not in forgotten}
    values = [SharedValue(item.key, item.kind, before.get(_id(item))) for item in shared]
    opened = run_of(*past.an_announced_run()) if run.continues is not None else run
    pieces, deepest = record.created.ingredients, record.created.max_depth
    prompt = compose_run_prompt(run, opened, pieces, deepest, values, before)
    prompt = replace(prompt, system_prompt=prompt.system_prompt.replace(*replaced_words, 1))
    started = past.started(
        system_prompt=ref(prompt.system_prompt), message=ref(prompt.message), shared_context=shared
    )
    record = record.changed({"started": started})
    known |= {ref(item).id: item for item in (prompt.system_prompt, prompt.message)}
    needed = {item.id for item in prompt_texts_needed(record, run)}
    gone = {*erased, *forgotten}
    texts = {id_: known[id_] for id_ in needed if id_ in known and known[id_] not in gone}
    decided = spawn.again(then, now)
    return compare_prompts(record, run, opened, decided, texts)


def _id(shared: SharedKey) -> UUID:
    assert shared.value is not None
    return shared.value.id


def where(found: Verdict | None) -> tuple[str, str]:
    """Return the verdict and the first part that differs."""
    assert found is not None
    assert found.difference is not None, found
    return found.verdict, found.difference.field


SPAWNS = st.builds(
    Spawn,
    agent_id=st.sampled_from([None, "writer"]),
    preamble=st.none() | st.text("ab \n", max_size=40) | st.just(WORDS),
    bootstrap=st.lists(st.text("ab\n", min_size=1, max_size=9), max_size=2).map(tuple),
    origin=st.sampled_from([None, HERE, '{"to": "room:1"}', "not an address"]),
    task=st.text("ab\n", min_size=1, max_size=9),
    receipts=st.sampled_from([(), TOLD.receipts, TOLD.receipts[:1]]),
    light_context=st.booleans(),
)


@given(
    spawn=SPAWNS,
    characters=st.sampled_from([0, 10, 4000]),
    shared=st.sampled_from([(), (SHARED,)]),
    gone=st.sampled_from([(), (HERE,)]),
)
def test_prompt_composed_again_is_identical(
    spawn: Spawn, characters: int, shared: tuple[SharedKey, ...], gone: tuple[str, ...]
) -> None:
    scripts = [
        {"id": receipt.id, "uri": receipt.uri, "position": receipt.position}
        for receipt in spawn.receipts
    ]
    values = limits(
        "writer",
        allowAgents=["*"],
        contextPreambleMaxChars=characters,
        contextScripts={"run": scripts},
    )
    assert compared(spawn, values, values, shared=shared, forgotten=gone) is None


def test_message_composed_again_is_the_same_to_the_byte() -> None:
    sent = Sent(agent_id="writer", preamble_kept=WORDS, bootstrap=("always be kind",))
    assert compared(sent, BASE, BASE) is None


def scripted(*changes: Values) -> Values:
    """Return a file with both scripts and these changes."""
    both: list[Values] = [
        {"id": "facts", "uri": "/scripts/facts"},
        {"id": "front", "uri": "/scripts/front", "position": "prepend"},
    ]
    for prompt, change in zip(both, changes, strict=False):
        prompt.update(change)
    return but(BASE, {"agents": {"defaults": {"subagents": {"contextScripts": {"run": both}}}}})


CHANGES: dict[str, tuple[Values, str]] = {
    "less of what its parent said": (
        but(scripted(), {"agents": {"defaults": {"subagents": {"contextPreambleMaxChars": 50}}}}),
        "/prompt/systemPrompt/preamble",
    ),
    "a script's place": (scripted({"position": "prepend"}), "/prompt/message/script:facts"),
    "a tool that it is not told of": (
        but(scripted(), {"tools": {"subagents": {"tools": {"deny": ["sessions_spawn"]}}}}),
        "/prompt/systemPrompt/depth",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_first_differing_part_is_named(name: str) -> None:
    now, part = CHANGES[name]
    assert where(compared(TOLD, scripted(), now)) == ("different-context", part)


def test_changed_script_text_is_named_in_the_prompt() -> None:
    output = '{"message": "a fact", "note": "a fact!"}'
    result = TOLD.changed(
        receipts=(
            receipt(
                "facts",
                "injected",
                injected=ref("a fact"),
                position="append",
                output=ref(output),
                error=None,
                exit_code=0,
            ),
        )
    )
    result.texts.keep(output)
    result.texts.keep("a fact")
    then = but(scripted(), {})
    del then["agents"]["defaults"]["subagents"]["contextScripts"]["run"][1:]
    now = but(then, {})
    now["agents"]["defaults"]["subagents"]["contextScripts"]["run"][0]["returnKey"] = "note"
    assert where(compared(result, then, now)) == (
        "different-context",
        "/prompt/message/script:facts",
    )


def test_sizes_are_told_and_no_texts() -> None:
    found = compared(TOLD, scripted(), CHANGES["less of what its parent said"][0])
    assert found is not None
    assert found.difference is not None
    before, after = found.difference.recorded, found.difference.decided
    assert isinstance(before, int)
    assert isinstance(after, int)
    assert before - after == len(WORDS) - len(
        "so many words so many words so many words so many"
    ) - len("...(truncated)")


GONE = ("the prompt: texts that it was made from, or its own, were erased",)


@pytest.mark.parametrize("text", ["look around", "a fact", '"go on"'])
def test_erased_text_of_the_prompt_is_named(text: str) -> None:
    found = compared(TOLD, scripted(), scripted(), erased=[text], shared=(SHARED,))
    assert found is not None
    assert (found.verdict, found.missing) == ("not-replayable", GONE)


def test_erased_address_makes_the_prompt_unknown() -> None:
    found = compared(TOLD, scripted(), scripted(), erased=[HERE])
    assert found is not None
    assert found.verdict == "not-replayable"
    assert found.missing == ("the prompt: the addresses that name its channel were erased",)


def test_part_before_an_erased_channel_still_differs() -> None:
    now = CHANGES["less of what its parent said"]
    assert where(compared(TOLD, scripted(), now[0], erased=[HERE])) == ("different-context", now[1])


def test_part_of_the_message_still_differs() -> None:
    """The difference may be at any distance."""
    long = TOLD.changed(task="look around " * 1_000)
    gone = but(scripted(), {})
    del gone["agents"]["defaults"]["subagents"]["contextScripts"]["run"][0]
    found = compared(long, scripted(), gone, erased=[HERE])
    assert where(found) == ("different-context", "/prompt/message/end")


def test_prompt_composed_by_earlier_release_differs() -> None:
    found = compared(
        TOLD, scripted(), scripted(), replaced_words=("always be kind", "always be quick")
    )
    assert where(found) == ("different-context", "/prompt/systemPrompt/bootstrap:0.md")
