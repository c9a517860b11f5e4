"""Each command on the page about time travel has the documented effect."""

import importlib
import json
import re
import shlex
import signal
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.support.servers.preloaded import ROOT, run_command
from tests.support.servers.server import Server
from tests.support.servers.time_travel import commands, server_of_examples, status_of_recording
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server
WORKFLOW = ROOT / "examples" / "github-actions" / "what-if.yml"
CAP = "maxChildrenPerAgent: 5,"
LARGER_CAP = "maxChildrenPerAgent: 8,"
ALL_DIFFER = ("diff", "run compare", "config diff", "what-if --patch patch.json --since 7d --fail")


@pytest.fixture(scope="module")
def server(made_data_dir: Path) -> Iterator[Server]:
    with server_of_examples(made_data_dir) as running:
        yield running


def status_of(words: list[str]) -> int:
    """Return the exit status that the page says."""
    return status_of_recording(words) or int(" ".join(words).startswith(ALL_DIFFER))


def raise_cap(server: Server) -> None:
    """Have the server read a file with a larger cap."""
    assert server.config is not None
    assert server.process is not None
    text = server.config.read_text("utf-8")
    assert CAP in text
    server.config.write_text(text.replace(CAP, LARGER_CAP), "utf-8")
    before = len(server.log())
    server.process.send_signal(signal.SIGHUP)
    wait_for("the reload", lambda: "is active" in server.log()[before:])


@pytest.mark.nightly
def test_every_command_of_the_page_can_be_followed(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPAWNLOG_DATA_DIR", str(server.data_dir))
    place = server.data_dir.parent
    files = {text: str(place / text) for text in ("patch.json", "new.json5", "log.ndjson", "copy")}
    output: dict[str, str] = {}
    for words in commands():
        if words[:2] == ["config", "history"]:
            raise_cap(server)
        result = run_command(*[files.get(word, word) for word in words])
        assert result.returncode == status_of(words), (words, result.stdout, result.stderr)
        output[" ".join(words)] = result.stdout

    then = "--at run:late@refused"
    assert output[f"run list {then}"].count("running") == 5
    assert "5 active, at most 5" in output[f"session get main {then}"]
    assert output[f"session tree main {then}"].count("█") > 0
    assert re.search(r"subagent +1 +5/8", output[f"lane list {then}"])
    assert "queued" in output["run get nap-1 --at run:nap-1@queued"]
    assert "SpawnRefused" in output["event find --rule active_children"]
    assert re.search(r"after +running=5", output["event find --when running >= 5"])
    assert "5 stopped" in output["event histogram --buckets 6"]
    assert "SpawnRefused" not in output["run history nap-1"]
    assert re.search(r"stage +[0-9]+ +[0-9]+ +RunAnnounced", output["run history nap-1 --set-by"])
    assert "5 of 5 children are active" in output["run explain late"]

    cap = "what-if --set /agents/defaults/subagents/maxChildrenPerAgent="
    assert re.search(r"newly-allowed +1", output[f"{cap}8"])
    assert re.search(r"same +6", output["what-if --config new.json5 --since 7d"])
    assert "(4/2)" in output[f"{cap}2"]
    assert "(4/2)" not in output[f"{cap}2 --cascade"]
    assert "(2/2)" in output[f"{cap}2 --cascade"]
    failing = "what-if --patch patch.json --since 7d --fail-on newly-refused"
    assert '<failure message="3 newly-refused">' in output[f"{failing} --output junit"]

    assert "slept for 1 s" in output["run respawn late --label late-again --wait"]
    assert "late-again" in output["run list --respawned-from late"]
    assert re.search(r"^ +2 ", output["config history"], re.M)
    assert "maxChildrenPerAgent" in output["config diff 1 2"]
    assert (
        json.loads(output[f"config show {then}"])["agents"]["defaults"]["subagents"][
            "maxChildrenPerAgent"
        ]
        == 5
    )
    heads = {
        output[f"log {text}"].splitlines()[-1]
        for text in (
            "export --out log.ndjson --contents --transcripts",
            "verify log.ndjson",
            "import log.ndjson --data-dir copy",
        )
    }
    assert len(heads) == 1


def test_the_workflow_for_a_pull_request_asks_a_server_by_url_and_token(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    # pre-commit brings it along.
    workflow: dict[Any, Any] = importlib.import_module("yaml").safe_load(
        WORKFLOW.read_text("utf-8")
    )
    # YAML reads `on` as true.
    assert set(workflow) == {"name", True, "permissions", "jobs"}
    assert "pull_request" in workflow[True]
    (job,) = workflow["jobs"].values()
    (step,) = [step for step in job["steps"] if "what-if" in step.get("run", "")]
    assert step["env"] == {
        name: f"${{{{ secrets.{name} }}}}" for name in ("SPAWNLOG_URL", "SPAWNLOG_TOKEN")
    }
    command, pipe, _ = step["run"].partition("|")
    assert pipe
    words = shlex.split(command)
    assert words[:2] == ["spawnlog", "what-if"]
    assert ("--since", "7d") in set(pairwise(words))
    monkeypatch.delenv("SPAWNLOG_DATA_DIR", raising=False)
    monkeypatch.setenv("SPAWNLOG_URL", server.url)
    monkeypatch.setenv("SPAWNLOG_TOKEN", server.token)
    config = str(server.data_dir.parent / "new.json5")
    result = run_command(*[config if word == "new.json5" else word for word in words[1:]])
    assert result.returncode == 0, result.stderr
    suite = ElementTree.fromstring(result.stdout)
    assert (suite.tag, suite.get("failures")) == ("testsuite", "0")
