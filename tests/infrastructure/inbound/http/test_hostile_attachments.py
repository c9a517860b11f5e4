"""Hostile attachments: refused clearly, or stored inside."""

import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import count, cycle
from pathlib import Path
from typing import Any

import pytest

from domain.values.base64 import decode_strict_base64
from domain.values.text import single_line
from tests.support.builders.folders import tree_of
from tests.support.faults.hostile_attachments import (
    LIMITS,
    PLANTED,
    HostileRequest,
    hostile_requests,
)
from tests.support.http.problems import pointers_of, problem_of
from tests.support.servers.attachment_server import AttachmentServer, text
from tests.support.tiers import nightly_but

pytestmark = pytest.mark.server

RACE_SECONDS = 4.0
RACERS = 4
PAUSES_SECONDS = (0.0003, 0.001, 0.005, 0.02, 0.1)
"""Pauses between two changes, so that some interrupt a write and some do not. Their number is odd,
so that each occurs with and without the link.
"""
ONE_OF_EACH_ANSWER = {
    hostile_request.refusal: hostile_request
    for hostile_request in hostile_requests()
    if hostile_request.is_text
}.values()
"""One request per answer; `test_writing_attachments` tries the others."""
LIVING = ("postgres", "transcripts")
"""Folders of a data directory that change while a server works."""


def around(server: AttachmentServer) -> dict[str, str]:
    """Return all entries of the server's folder and data, except those that it writes all the
    time.
    """
    data, place = server.data_dir.resolve(), server.ground.parent
    watched = [path for path in place.iterdir() if path not in (data, server.log_path)]
    watched += [path for path in data.iterdir() if path.name not in LIVING]
    return {
        os.path.normpath(path.relative_to(place) / name): value
        for path in watched
        for name, value in tree_of(path).items()
    }


def contents(request: HostileRequest) -> dict[str, bytes | None]:
    """Return the files of a request as they are stored."""
    return {
        name: decode_strict_base64(request.content, LIMITS.max_file_bytes)
        if request.encoding == "base64"
        else request.content.encode()
        for name, request in zip(request.names, request.asked, strict=True)
    }


@pytest.mark.parametrize("request_", ONE_OF_EACH_ANSWER, ids=str)
def test_hostile_request_is_refused_or_stored_inside(
    retaining: AttachmentServer, request_: HostileRequest
) -> None:
    workspace = retaining.workspace()
    before = around(retaining)
    answer = retaining.attach(request_.body(), workspace)
    if answer.status_code != 201:
        assert around(retaining) == before
    if any("\0" in request.name + request.content for request in request_.asked):
        # No text of a request may hold it; a file that does is sent as base64.
        problem = problem_of(answer, 400, "malformed_json")
        assert all(pointer.startswith("/attachments/") for pointer in pointers_of(problem))
    elif request_.refusal is not None:
        problem = problem_of(answer, 422, "spawn_error")
        assert problem["rule"] == "attachments"
        assert problem["detail"].startswith(request_.refusal)
        assert single_line(problem["detail"], characters_max=300) == problem["detail"]
    else:
        assert answer.status_code == 201, answer.text
        receipt = answer.json()["attachments"]
        assert [file["name"] for file in receipt["files"]] == list(request_.names)
        folder = workspace / receipt["relDir"]
        stored = {path.name: path.read_bytes() for path in folder.iterdir()}
        assert stored.pop(".manifest.json")
        assert stored == contents(request_)
        changed = {name for name, _ in before.items() ^ around(retaining).items()}
        inside = str(workspace.relative_to(retaining.ground.parent))
        assert all(name == inside or name.startswith(f"{inside}/.openclaw") for name in changed)


@pytest.mark.parametrize("title", PLANTED)
def test_planted_link_leads_nowhere(retaining: AttachmentServer, title: str) -> None:
    workspace, outside = retaining.workspace(), retaining.workspace()
    (outside / "attachments").mkdir()
    PLANTED[title](workspace, outside)
    before = around(retaining)
    problem = problem_of(retaining.attach([text("a")], workspace), 422, "spawn_error")
    assert problem["rule"] == "attachments"
    assert problem["detail"].startswith("attachments_materialization_failed (")
    assert str(workspace) not in problem["detail"]
    retaining.undone(problem["runId"])
    assert retaining.run(problem["runId"])["attachments"] is None
    assert around(retaining) == before


def test_workspace_named_by_link_is_its_folder(retaining: AttachmentServer) -> None:
    folder = retaining.workspace()
    link = folder.with_name(f"{folder.name}-link")
    link.symlink_to(folder)
    answer = retaining.attach([text("a")], link)
    assert answer.status_code == 201, answer.text
    assert (folder / answer.json()["attachments"]["relDir"] / "a").exists()
    assert retaining.run(answer.json()["runId"])["workspaceDir"] == str(folder)


@contextmanager
def swapping(workspace: Path, sentinel: Path) -> Iterator[list[int]]:
    """Replace `.openclaw` of a workspace by a link, again and again; yield the counter."""
    over, swaps = threading.Event(), [0]
    place, names = workspace / ".openclaw", count()

    def swap() -> None:
        for pause in cycle(PAUSES_SECONDS):
            if over.wait(pause):
                return
            # The server makes and removes the folder at the same time.
            if place.is_symlink():
                with suppress(OSError):
                    place.unlink()
                continue
            with suppress(OSError):
                place.rename(workspace / f"aside-{next(names)}")
            with suppress(OSError):
                place.symlink_to(sentinel)
                swaps[0] += 1

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield swaps
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("kept", nightly_but(["keep", "delete"], ["delete"]))
def test_link_that_comes_and_goes_leads_nowhere(retaining: AttachmentServer, kept: str) -> None:
    workspace, sentinel = retaining.workspace(), retaining.workspace()
    (sentinel / "attachments").mkdir()
    before = tree_of(sentinel)
    deadline = time.monotonic() + RACE_SECONDS
    files = [text(f"{number}.txt", "canary" * 20) for number in range(10)]

    def ask(_: int) -> list[tuple[int, dict[str, Any]]]:
        output = []
        while time.monotonic() < deadline:
            answer = retaining.attach(files, workspace, cleanup=kept)
            output.append((answer.status_code, answer.json()))
        return output

    with swapping(workspace, sentinel) as swaps, ThreadPoolExecutor(RACERS) as pool:
        answers = [line for number in pool.map(ask, range(RACERS)) for line in number]
        for status, body in answers:
            if status == 422 or kept == "delete":
                retaining.undone(body["runId"])
        assert swaps[0] > 20
    known = {(status, body.get("rule")) for status, body in answers}
    assert known == {(201, None), (422, "attachments")}
    assert tree_of(sentinel) == before
