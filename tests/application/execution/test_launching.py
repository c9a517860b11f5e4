"""What a claimed run is started with: composed from the record, and from nothing else."""

from pathlib import Path
from typing import Any

import pytest

from application.log.texts import keyed_hash
from domain.run.events import RunEvent
from domain.run.facts import ForkFacts
from tests.support.builders.launched_runs import ATTACHED, KEY, launched, workspace_in, written
from tests.support.builders.run_histories import step_begun, step_taken
from tests.support.builders.storytelling import ref, requester


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return workspace_in(tmp_path)


async def test_the_files_of_the_workspace_stand_in_the_system_prompt_with_their_names() -> None:
    made = await launched()
    prompt = made.launch.system_prompt
    assert prompt.endswith(
        "## AGENTS.md\n\nbootstrap:AGENTS.md\n\n## TOOLS.md\n\nbootstrap:TOOLS.md"
    )
    assert made.launch.message.endswith("script:first\n\ntask\n\nscript:last")
    parts = {part.source: part for part in made.start.parts}
    tools = parts["bootstrap:TOOLS.md"]
    held = prompt.encode()[tools.start : tools.end]
    assert held == b"## TOOLS.md\n\nbootstrap:TOOLS.md"
    assert tools.hmac == keyed_hash(KEY, held)


async def test_the_parts_on_record_cover_both_texts(workspace: Path) -> None:
    made = await launched(*written(workspace), attachments=ATTACHED)
    for of, text in (("systemPrompt", made.launch.system_prompt), ("message", made.launch.message)):
        at = 0
        for part in made.start.parts:
            if part.of == of:
                assert part.start == at
                at = part.end
        assert at == len(text.encode())


async def test_a_file_whose_text_was_erased_leaves_no_trace() -> None:
    made = await launched(erased=("bootstrap:AGENTS.md",))
    assert "AGENTS.md" not in made.launch.system_prompt
    assert "## TOOLS.md" in made.launch.system_prompt


async def test_a_child_of_a_session_that_stays_is_told_so() -> None:
    made = await launched(options={"mode": "session"})
    assert "This subagent session is persistent" in made.launch.message
    assert "persistent" not in (await launched()).launch.message


async def test_the_requesters_channel_is_told_where_it_is_known() -> None:
    asks = requester(origin=ref("origin"))
    for origin, line in (
        ('{"channel":"telegram","to":"1"}', "\n- Requester channel: telegram\n"),
        ('{"to":"1"}', None),
        ('{"channel":7}', None),
        ("[]", None),
        ("no JSON", None),
    ):
        made = await launched(requester=asks, told={"origin": origin})
        if line is None:
            assert "Requester channel" not in made.launch.system_prompt
        else:
            assert line in made.launch.system_prompt
    erased = await launched(requester=asks, erased=("origin",))
    assert "Requester channel" not in erased.launch.system_prompt


def forked(**changes: Any) -> tuple[RunEvent, ...]:
    facts = ForkFacts(position=1, entries=3, tokens=40, mode="fork").changed(changes)
    outcome = "forked" if facts.mode == "fork" else "isolated"
    return step_begun("context_fork"), step_taken("context_fork", outcome=outcome, fork=facts)


async def test_a_forked_child_is_told_what_it_begins_with_and_where_that_lies() -> None:
    made = await launched(*forked())
    (path,) = made.launch.history_files
    assert path.endswith("/4"), "an entry that says where they are from stands in front"
    assert "## Earlier conversation\n- This session begins with 3 entries of your requester" in (
        made.launch.system_prompt
    )
    assert "fork" in {part.source for part in made.start.parts}


async def test_a_child_whose_requester_said_too_much_begins_with_nothing() -> None:
    made = await launched(*forked(mode="isolated", tokens=100_001))
    assert made.launch.history_files == ()
    assert "Earlier conversation" not in made.launch.system_prompt
