"""`spawnlog what-if`."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from domain.what_if.verdict import VERDICTS
from tests.support.servers.command_line import Command
from tests.support.servers.preloaded import ROOT
from tests.support.servers.recorded_api import RecordedApi, Reply
from tests.support.servers.server import MAIN

ASKED = "/v1/what-if"
HOSTILE = "\x1b[2J\x00\x0b\ufffe]]><&\"'\n"
SET = ("--set", "/agents/defaults/subagents/maxSpawnDepth=1")


def verdict(name: str = "newly-refused", **changes: Any) -> dict[str, Any]:
    """Return a line of the answer."""
    plain = {
        "runId": "69eae0f9-12a6-46eb-a892-2dcc416bb8c6",
        "position": 7,
        "kind": "spawn",
        "agentId": "counter",
        "label": "reviewer",
        "requesterSessionKey": "agent:main:main",
        "configRevision": 1,
        "verdict": name,
        "rule": "depth",
        "text": "too deep",
        "difference": {"field": "/rule", "recorded": None, "decided": "depth"},
        "missing": [],
        "assumed": [],
    }
    return plain | changes


def totals(agent: str = "counter", **counts: int) -> dict[str, Any]:
    """Return the last line."""
    by_verdict = {text: counts.get(text.replace("-", "_"), 0) for text in VERDICTS}
    found = {
        "fromPosition": 1,
        "toPosition": 9,
        "decisions": sum(by_verdict.values()),
        "byVerdict": by_verdict,
        "byAgent": {agent: {verdict: count for verdict, count in by_verdict.items() if count}},
        "byRule": {},
    }
    return {"totals": found}


def answers(api: RecordedApi, *lines: dict[str, Any]) -> None:
    """Set the answer of the server."""
    text = "".join(json.dumps(line) + "\n" for line in lines)
    api.on("POST", ASKED, Reply(text, content_type="application/x-ndjson"))


def test_fail_on_verdict_exits_1(spawnlog: Command, api: RecordedApi) -> None:
    for fail_on, status in ((), 0), (("newly-allowed",), 0), (("newly-refused",), 1):
        answers(api, verdict(), totals(newly_refused=1, same=2))
        named = [word for item in fail_on for word in ("--fail-on", item)]
        found = spawnlog("what-if", *SET, *named)
        assert found.exit_code == status, found.output
    assert "newly-refused: 1" in found.stdout


def test_changed_counts_point_to_cascade(spawnlog: Command, api: RecordedApi) -> None:
    for changed, flags, is_noted in ((2, (), True), (1, (), False), (2, ("--cascade",), False)):
        answers(api, verdict(), totals(newly_refused=changed))
        found = spawnlog("what-if", *SET, *flags)
        assert ("each decision is checked alone" in found.stderr) == is_noted, flags


def test_differing_values_are_json(spawnlog: Command, api: RecordedApi) -> None:
    difference = {"field": "tools", "recorded": None, "decided": ["read"]}
    differing = verdict(rule=None, text=None, difference=difference)
    answers(api, differing, totals(newly_refused=1))
    found = spawnlog("what-if", *SET)
    assert 'tools: null -> ["read"]' in found.stdout
    assert "1 decision from" in found.stdout


def test_set_is_sent_as_patch(spawnlog: Command, api: RecordedApi) -> None:
    answers(api, totals())
    spawnlog("what-if", *SET, "--since", "pos:3", "--cascade")
    body = api.asked[-1].body
    operation = {"op": "add", "path": "/agents/defaults/subagents/maxSpawnDepth", "value": 1}
    assert (body["patch"], body["from"], body["cascade"]) == ([operation], "pos:3", True)


@pytest.mark.parametrize("text", ["{}", "not json", '"x"'])
def test_file_that_is_no_patch_is_not_sent(
    spawnlog: Command, api: RecordedApi, tmp_path: Path, text: str
) -> None:
    file = tmp_path / "change.json"
    file.write_text(text, "utf-8")
    assert spawnlog("what-if", "--patch", str(file)).exit_code == 2
    assert api.asked == []


def test_configuration_is_sent_with_its_name(
    spawnlog: Command, api: RecordedApi, tmp_path: Path
) -> None:
    answers(api, totals())
    file = tmp_path / "new.json5"
    file.write_text("{ /* JSON5 */ }", "utf-8")
    for named, name in (("-", "stdin"), (str(file), str(file))):
        assert spawnlog("what-if", "--config", named, given="{ /* JSON5 */ }").exit_code == 0
        body = api.asked[-1].body
        assert (body["configText"], body["configName"]) == ("{ /* JSON5 */ }", name)


def test_configuration_is_sent_with_values_of_variables(
    spawnlog: Command, api: RecordedApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEAD_MODEL", "acme/big")
    answers(api, totals())
    file = tmp_path / "new.json5"
    monkeypatch.delenv("OTHER_MODEL", raising=False)
    text = '{agents: {defaults: {model: "${LEAD_MODEL}", workspace: "${HOME}/w"}}}'
    file.write_text(text.replace("}}}", ", thinkingDefault: '${OTHER_MODEL}'}}}"), "utf-8")
    result = spawnlog("what-if", "--config", str(file))
    assert result.exit_code == 0
    assert "agents.defaults.thinkingDefault: ${OTHER_MODEL} is not set" in result.stderr
    defaults = {
        "model": "acme/big",
        "workspace": "${HOME}/w",
        "thinkingDefault": "${OTHER_MODEL}",
    }
    assert api.asked[0].body["config"] == {"agents": {"defaults": defaults}}
    assert "configText" not in api.asked[0].body


def test_cut_answer_is_an_error(spawnlog: Command, api: RecordedApi) -> None:
    failure = {"failure": {"detail": f"the service is stopping {HOSTILE}"}}
    for lines in ((verdict(),), (verdict(), failure)):
        answers(api, *lines)
        found = spawnlog("what-if", *SET, "--fail-on", "newly-refused")
        assert found.exit_code == 2, found.output
        assert "\x1b" not in found.output


def test_progress_is_shown_on_terminal_only(spawnlog: Command, api: RecordedApi) -> None:
    progress = {"progress": {"position": 1_234, "until": 56_789, "decisions": 100}}
    answers(api, verdict(), progress, totals(newly_refused=1))
    unwatched = spawnlog("what-if", *SET, "--output", "jsonl")
    assert (unwatched.stderr, len(unwatched.stdout.splitlines())) == ("", 2)
    shown, screen = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-m", MAIN, "what-if", *SET, "--output", "jsonl", "--url", api.url],
            cwd=ROOT,
            env={**os.environ, "SPAWNLOG_TOKEN": "a-token"},
            stdout=subprocess.PIPE,
            stderr=screen,
            text=True,
            timeout=60,
            check=True,
        )
        assert done.stdout == unwatched.stdout
        output = os.read(shown, 4_096).decode()
    finally:
        os.close(screen)
        os.close(shown)
    assert "position 1,234 of 56,789, 100 decisions" in output


@pytest.mark.parametrize("output", ["table", "junit", "json", "jsonl"])
def test_hostile_texts_are_escaped(spawnlog: Command, api: RecordedApi, output: str) -> None:
    hostile = verdict(label=HOSTILE, agentId=HOSTILE, text=HOSTILE, missing=[], assumed=[HOSTILE])
    unknown = verdict("not-replayable", rule=None, text=None, missing=[HOSTILE])
    changed = verdict(
        "different-model",
        rule=None,
        text=None,
        difference={"field": HOSTILE, "recorded": HOSTILE, "decided": [HOSTILE]},
    )
    last = totals(HOSTILE, newly_refused=1, not_replayable=1, different_model=1)
    answers(api, hostile, unknown, changed, last)
    found = spawnlog("what-if", *SET, "--output", output, "--fail-on", "not-replayable")
    assert found.exit_code == 1, found.output
    assert not set("\x1b\x00\x0b") & set(found.stdout)
    if output == "junit":
        assert "\ufffe" not in found.stdout
        suite = ElementTree.fromstring(found.stdout)
        assert suite.get("failures") == "1"
        assert len(suite) == len(VERDICTS)
    elif output == "json":
        assert len(json.loads(found.stdout)["items"]) == 3
    elif output == "jsonl":
        assert len([json.loads(line) for line in found.stdout.splitlines()]) == 4
