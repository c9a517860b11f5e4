"""`AGENTS.md` and `TOOLS.md` of a workspace, from the folder into the prompt on record."""

import os
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers.attachment_server import (
    AttachingHouse,
    text,
)

pytestmark = pytest.mark.server

AGENTS = "# Harbour\n\nCount the boats. ⚓"
TOOLS = "The crane is called Emma."


def workspace_with(house: AttachingHouse, **files: str) -> Path:
    """A workspace with these files, each ending in `.md`."""
    workspace = house.workspace()
    for name, content in files.items():
        (workspace / f"{name}.md").write_text(content, "utf-8")
    return workspace


def ran(house: AttachingHouse, workspace: Path, **body: Any) -> dict[str, Any]:
    """A run in that workspace, ended, with the warnings of the answer to its spawn."""
    answer = house.attach([], workspace, **body)
    assert answer.status_code == 201, answer.text
    run = house.server.run(answer.json()["runId"], "ended")
    assert run["workspaceDir"] == str(workspace)
    assert run["warnings"] == answer.json()["warnings"]
    return run


def brought(house: AttachingHouse, run: dict[str, Any]) -> dict[str, str]:
    """The parts of the run's prompt that are bootstrap files, in their order."""
    prompt = house.get(f"/v1/runs/{run['runId']}/prompt")
    system = prompt["systemPrompt"].encode()
    return {
        part["source"]: system[part["start"] : part["end"]].decode()
        for part in prompt["parts"]
        if part["source"].startswith("bootstrap:")
    }


def test_the_files_of_the_workspace_are_parts_of_the_prompt(attaching: AttachingHouse) -> None:
    workspace = workspace_with(attaching, TOOLS=TOOLS, AGENTS=AGENTS, SOUL="never read")
    run = ran(attaching, workspace)
    assert run["warnings"] == []
    parts = brought(attaching, run)
    assert list(parts) == ["bootstrap:AGENTS.md", "bootstrap:TOOLS.md"]
    assert parts["bootstrap:AGENTS.md"].strip() == f"## AGENTS.md\n\n{AGENTS}"
    assert parts["bootstrap:TOOLS.md"].strip() == f"## TOOLS.md\n\n{TOOLS}"
    prompt = attaching.get(f"/v1/runs/{run['runId']}/prompt")
    assert "never read" not in prompt["systemPrompt"] + prompt["message"]


def test_their_texts_stand_in_no_event(attaching: AttachingHouse) -> None:
    run = ran(attaching, workspace_with(attaching, AGENTS=AGENTS))
    events = attaching.http.get(f"/v1/runs/{run['runId']}/events").text
    assert "bootstrap:AGENTS.md" in events
    assert "Count the boats" not in events
    assert "Count the boats" not in attaching.server.log()


def test_the_prompt_stays_as_it_was_when_the_files_change(attaching: AttachingHouse) -> None:
    workspace = workspace_with(attaching, AGENTS=AGENTS)
    before = ran(attaching, workspace)
    (workspace / "AGENTS.md").write_text("# Changed", "utf-8")
    after = ran(attaching, workspace)
    assert AGENTS in brought(attaching, before)["bootstrap:AGENTS.md"]
    assert "# Changed" in brought(attaching, after)["bootstrap:AGENTS.md"]


def test_a_light_context_leaves_them_out(attaching: AttachingHouse) -> None:
    workspace = workspace_with(attaching, AGENTS=AGENTS)
    (workspace / "TOOLS.md").symlink_to("AGENTS.md")
    run = ran(attaching, workspace, lightContext=True)
    assert run["warnings"] == []
    assert brought(attaching, run) == {}


def test_a_workspace_without_them_brings_nothing(attaching: AttachingHouse) -> None:
    for files in ({}, {"AGENTS": " \n", "TOOLS": ""}):
        run = ran(attaching, workspace_with(attaching, **files))
        assert (brought(attaching, run), run["warnings"]) == ({}, [])


def test_what_cannot_be_read_is_told_and_left_out(attaching: AttachingHouse) -> None:
    workspace = workspace_with(attaching)
    secret = attaching.workspace() / "secret"
    secret.write_text("canary", "utf-8")
    (workspace / "AGENTS.md").symlink_to(secret)
    os.mkfifo(workspace / "TOOLS.md")
    run = ran(attaching, workspace)
    assert brought(attaching, run) == {}
    left_out = "of the child's workspace was left out: it is"
    link, pipe = run["warnings"]
    assert link.startswith(f"AGENTS.md {left_out} a symbolic link.")
    assert pipe.startswith(f"TOOLS.md {left_out} no regular file.")
    prompt = attaching.get(f"/v1/runs/{run['runId']}/prompt")
    assert "canary" not in prompt["systemPrompt"]


def test_they_stand_before_the_attachments(attaching: AttachingHouse) -> None:
    workspace = workspace_with(attaching, AGENTS=AGENTS)
    requester = {"sessionKey": f"agent:main:{uuid.uuid4().hex}"}
    answer = attaching.attach([text("a")], workspace, requester=requester)
    assert answer.status_code == 201, answer.text
    run = attaching.server.run(answer.json()["runId"], "ended")
    prompt = attaching.get(f"/v1/runs/{run['runId']}/prompt")
    sources = [part["source"] for part in prompt["parts"]]
    assert sources.index("bootstrap:AGENTS.md") < sources.index("attachments")
