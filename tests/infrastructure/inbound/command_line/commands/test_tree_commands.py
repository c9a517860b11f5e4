"""`spawnlog session tree` and `run tree`: output for people and for programs."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from infrastructure.inbound.command_line.display.session_tree import (
    ASCII,
    BOXES,
    TreeSigns,
    flat_nodes,
    signs_for,
    tree_lines,
)
from tests.support.servers.command_line import Command
from tests.support.servers.recorded_api import RecordedApi, Reply

RUN = "0f6d1c2e-1111-4222-8333-944445555666"


def at(seconds: int) -> str:
    return f"2026-03-01T09:00:{seconds:02}.000000Z"


def run(label: str, **stages: int) -> dict[str, Any]:
    """Return a run that reached these stages after these seconds."""
    over = stages.get("ended")
    return {
        "runId": RUN,
        "stage": list(stages)[-1],
        "status": "done" if over is not None else "running",
        "outcome": "success" if over is not None else None,
        "agentId": "steward",
        "label": label,
        "createdAt": at(0),
        "stages": [
            {"stage": stage, "position": place, "at": at(seconds)}
            for place, (stage, seconds) in enumerate(stages.items())
        ],
    }


def node(
    key: str, runs: list[dict[str, Any]], *children: dict[str, Any], cut: bool = False
) -> dict[str, Any]:
    return {
        "sessionKey": key,
        "sessionId": RUN,
        "agentId": "steward",
        "depth": 1,
        "role": "leaf",
        "open": True,
        "createdAt": at(0),
        "activeChildren": 0,
        "runs": runs,
        "children": list(children),
        "childrenCut": cut,
        "refused": [],
        "refusedCut": False,
    }


def tree(*children: dict[str, Any], cut: bool = False) -> dict[str, Any]:
    root = node("agent:main:main", [], *children, cut=cut)
    return {"position": 40, "at": at(40), "nodes": 4, "cut": cut, "root": root}


FAMILY = tree(
    node(
        "agent:steward:subagent:a",
        [run("scout", requested=0, started=10, ended=40)],
        node("agent:steward:subagent:b", [run("deep", requested=10, started=20, ended=30)]),
        cut=True,
    ),
    node("agent:steward:subagent:c", [run("slow", requested=20, started=30)]),
)


def drawn(
    found: dict[str, Any], cells: int = 80, signs: TreeSigns = BOXES, now: datetime | None = None
) -> list[str]:
    return [line.plain for line in tree_lines(found, cells, signs, now)]


def test_running_bar_ends_now() -> None:
    working = tree(node("agent:steward:subagent:c", [run("slow", requested=20, started=30)]))
    assert "1m" in drawn(working, now=datetime(2026, 3, 1, 9, 1, 30, tzinfo=UTC))[1]
    earlier = datetime(2026, 3, 1, 9, 0, 39, tzinfo=UTC)
    assert drawn(working, now=earlier) == drawn(working)


def test_tree_draws_bars_on_one_scale() -> None:
    *lines, scale = drawn(FAMILY)
    beginnings = (
        "agent:main:main",
        "├─ scout (steward) 0f6d1c2e  ",
        "│  ├─ deep (steward) 0f6d1c2e  ",
        "│  └─ … more below agent:stewar",
        "└─ slow (steward) 0f6d1c2e  ",
    )
    for line, beginning in zip(lines, beginnings, strict=True):
        assert line.startswith(beginning)
    bars = [line.rstrip().rpartition("s  ")[2] for line in (lines[1], lines[2], lines[4])]
    width = len(bars[0])
    assert bars[0].index("█") == width // 4
    assert bars[0].startswith("░")
    assert bars[1].index("░") == width // 4
    assert bars[1].index("█") == width // 2
    assert len(bars[1]) == width * 3 // 4 + 1
    assert bars[2].endswith("█")
    assert "running" in lines[4]
    assert "30.0s" in lines[1]
    assert "10.0s" in lines[4]
    assert scale.startswith("2026-03-01 09:00:00.000 to 2026-03-01 09:00:40.000 UTC")


def test_refused_runs_show_their_rule() -> None:
    late = run("late", requested=25, refused=26) | {
        "stage": "refused",
        "status": "refused",
        "createdAt": at(25),
        "rule": "active_children",
    }
    family = tree(
        node("agent:steward:subagent:a", [run("scout", requested=0, ended=10)]),
        node("agent:steward:subagent:c", [run("slow", requested=30)]) | {"createdAt": at(30)},
    )
    family["root"] |= {"refused": [late], "refusedCut": True}
    *lines, _ = drawn(family)
    assert [line[3:7] for line in lines[1:]] == ["scou", "late", "slow", "… mo"]
    assert "refused: active_children" in lines[2]
    assert lines[-1].startswith("└─ … more below agent:main:main")


@pytest.mark.parametrize("cells", [20, 30, 40, 61, 100, 200])
def test_lines_fit_into_terminal(cells: int) -> None:
    for line in drawn(FAMILY, cells)[:-1]:
        assert len(line) <= max(cells, 8 + 10 + 8 + 6)


def test_respawned_run_names_its_original() -> None:
    again = {**run("reviewer", started=1, ended=2), "respawnedFrom": "1234567890"}
    (line, *_) = [
        tree_line.plain for tree_line in tree_lines({"root": node("key", [again])}, 100, BOXES)
    ]
    assert line.startswith("reviewer (steward) 0f6d1c2e from 12345678  done")


def test_terminal_without_boxes_gets_ascii() -> None:
    assert signs_for("utf-8") is BOXES
    for encoding in ("ascii", "latin-1", None, "no such encoding"):
        assert signs_for(encoding) is ASCII
    text = "\n".join(drawn(FAMILY, signs=ASCII))
    assert text.isascii()
    assert "|- scout" in text
    assert "`- slow" in text
    assert "#" in text


def test_flat_nodes_name_their_parents() -> None:
    pairs = [
        (session["parentSessionKey"], session["sessionKey"])
        for session in flat_nodes(FAMILY["root"])
    ]
    assert pairs == [
        (None, "agent:main:main"),
        ("agent:main:main", "agent:steward:subagent:a"),
        ("agent:steward:subagent:a", "agent:steward:subagent:b"),
        ("agent:main:main", "agent:steward:subagent:c"),
    ]


def test_tree_without_runs_has_no_scale() -> None:
    assert drawn(tree()) == ["agent:main:main  open"]


def test_tree_is_as_of_position(api: RecordedApi, spawnlog: Command) -> None:
    api.on("GET", "/v1/sessions/main/tree", Reply(FAMILY | {"cut": True}))
    shown = spawnlog("session", "tree", "main", "--at", "pos:40", "--depth", "3")
    assert shown.exit_code == 0, shown.output
    assert "scout (steward)" in shown.stdout
    assert "\x1b" not in shown.stdout
    assert "raise --limit or --depth" in shown.stderr
    (request,) = api.asked
    assert dict(request.query) == {"at": "pos:40", "limit": "500", "depth": "3"}


def test_tree_as_json_and_jsonl(api: RecordedApi, spawnlog: Command) -> None:
    api.on("GET", "/v1/sessions/main/tree", Reply(FAMILY))
    whole = spawnlog("session", "tree", "main", "-o", "json")
    assert json.loads(whole.stdout) == FAMILY
    lines = spawnlog("session", "tree", "main", "-o", "jsonl").stdout.splitlines()
    assert [json.loads(line)["sessionKey"] for line in lines] == [
        session["sessionKey"] for session in flat_nodes(FAMILY["root"])
    ]
    assert all("children" not in json.loads(line) for line in lines)


def test_tree_of_run_is_of_its_session(api: RecordedApi, spawnlog: Command) -> None:
    api.on("GET", f"/v1/runs/{RUN}", Reply({"runId": RUN, "childSessionKey": "agent:x:subagent:a"}))
    api.on("GET", "/v1/sessions/agent%3Ax%3Asubagent%3Aa/tree", Reply(FAMILY))
    shown = spawnlog("run", "tree", RUN)
    assert shown.exit_code == 0, shown.output
    assert "└─ slow" in shown.stdout


def test_tree_of_run_without_session_exits_4(api: RecordedApi, spawnlog: Command) -> None:
    api.on("GET", f"/v1/runs/{RUN}", Reply({"runId": RUN, "childSessionKey": None}))
    shown = spawnlog("run", "tree", RUN)
    assert shown.exit_code == 4
    assert "has no session, so nothing is below it" in shown.stderr
