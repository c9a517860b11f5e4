"""Credentials are given to a child, and are nowhere else: not even when it tells them."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infrastructure.outbound.credentials.auth_profiles import FILE_NAME
from tests.support.builders.folders import api_key, write_profiles
from tests.support.servers.canaries import answers_about, encoded, files_with, tables_with
from tests.support.servers.child_programs import waiter
from tests.support.servers.data_directories import copied, new_place
from tests.support.servers.running_server import RunningServer, configuration, scripted, wait_for

pytestmark = pytest.mark.server

KEY = "agent:main:canaries"
ENVIRONMENT = "canary-of-the-environment-5f1c"
IN_FILE = "canary-of-a-file-of-its-own-77aa"
IN_PROFILE = 'quoted"canary-of-a-profile-93bd\ncanary-of-its-second-line-64ef'
IN_CONFIGURATION = "canary-of-the-configuration-0e42"
OF_MAIN = "canary-of-the-main-agent-1d6b"
# Without the sign that JSON writes in another way.
OF_PROFILE = "canary-of-a-profile-93bd", "canary-of-its-second-line-64ef"
CANARIES = (ENVIRONMENT, IN_FILE, *OF_PROFILE, IN_CONFIGURATION, OF_MAIN)
GIVEN = {
    "BY_VARIABLE_API_KEY": ENVIRONMENT,
    "BY_FILE_API_KEY": IN_FILE,
    "BY_PROFILE_API_KEY": IN_PROFILE,
    "OF_CONFIGURATION_TOKEN": IN_CONFIGURATION,
    "OF_MAIN_API_KEY": OF_MAIN,
}

_TELLER = """
import base64, json, os, pathlib, sys, urllib.parse
sys.stdin.read()
said = dict(os.environ)
notes, form, status = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
(notes / (said["SPAWNLOG_RUN_ID"] + ".json")).write_text(json.dumps(said))
plain = "".join(name + "=" + value + "\\n" for name, value in said.items())
coded = "url " + urllib.parse.urlencode(said) + "\\nsigns "
coded += "".join(f"%{byte:02x}" for byte in json.dumps(said).encode()) + "\\n"
for around in range(3):
    lines = base64.encodebytes((around * "x" + plain).encode()).decode()
    coded += lines + "\\n" + lines.replace("\\n", "").translate({43: 45, 47: 95}) + "\\n"
if form == "jsonl":
    for entry in (
        {"type": "progress", "text": plain},
        {"type": "progress", "text": coded},
        {"type": "message", "role": "assistant", "text": repr(said)},
        {"type": "tool", "name": "env", "input": said, "output": plain},
        {"type": "usage", "inputTokens": 1, "outputTokens": 1, "model": plain},
        {"type": "result", "text": json.dumps(said)},
    ):
        print(json.dumps(entry))
    print(plain, coded)
else:
    print(plain, json.dumps(said), repr(said))
    print(coded, end="", flush=True)
    print(plain, end="")
sys.stderr.write("x" * 7000 + plain * 20 + coded + json.dumps(said))
sys.exit(status)
"""
_PROPOSING = """#!/bin/sh
echo '{"message": "m", "agentId": "lacking"}'
"""


def teller(agent_id: str, notes: Path, form: str, status: int, folder: Path) -> dict[str, Any]:
    """An agent that tells everything it was given, in both outputs."""
    runtime = {
        "type": "command",
        "command": [sys.executable, "-I", "-S", "-c", _TELLER, str(notes), form, str(status)],
        "output": form,
        "env": {"OF_CONFIGURATION_TOKEN": IN_CONFIGURATION},
    }
    return {"id": agent_id, "agentDir": str(folder), "runtime": runtime}


class Canaries(RunningServer):
    """A server whose agents have credentials. `folder` is theirs, outside the data directory."""

    def __init__(self, data_dir: Path, folder: Path) -> None:
        self.folder, self.notes = folder, folder / "notes"
        self.notes.mkdir(parents=True)
        keys = folder / "keys"
        write_profiles(
            keys,
            {
                "by-variable:default": api_key("by-variable", "${CANARY_VARIABLE}"),
                "by-file:default": api_key("by-file", {"file": "one.key"}),
                "by-profile:default": api_key("by-profile", IN_PROFILE),
            },
        )
        (keys / "one.key").write_text(IN_FILE)
        lacking = {"lacking:default": api_key("lacking", "${CANARY_THAT_IS_NOT_SET}")}
        write_profiles(folder / "lacking", lacking)
        self.vanishing = write_profiles(folder / "vanishing", {"v": api_key("v", {"file": "v"})})
        (folder / "vanishing" / "v").write_text(IN_FILE)
        self.of_main = write_profiles(
            data_dir / "agents" / "main" / "agent", {"of-main": api_key("of-main", OF_MAIN)}
        )
        script = folder / "proposing.sh"
        script.write_text(_PROPOSING)
        script.chmod(0o755)
        super().__init__(
            data_dir,
            self._agents(keys, script),
            environment={"CANARY_VARIABLE": ENVIRONMENT},
        )

    def _agents(self, keys: Path, script: Path) -> dict[str, Any]:
        named = {"id": "p", "uri": str(script), "format": "json", "returnKey": "message"}
        proposing = {"run": [{**named, "agentIdOverrideKey": "agentId", "log": "verbose"}]}
        command = {"type": "command", "command": ["true"]}
        config = configuration(
            {**scripted("main"), "default": True},
            teller("plain", self.notes, "text", 0, keys),
            teller("lines", self.notes, "jsonl", 0, keys),
            teller("failing", self.notes, "text", 3, keys),
            {"id": "lacking", "agentDir": str(self.folder / "lacking"), "runtime": command},
            {"id": "vanishing", "agentDir": str(self.folder / "vanishing"), "runtime": command},
            {**scripted("proposing"), "subagents": {"contextScripts": proposing}},
            waiter("waiter", self.notes),
            maxConcurrent=1,
            archiveAfterMinutes=0,
        )
        return config

    def ask(self, agent_id: str) -> Any:
        """The answer to a spawn."""
        return self.spawn(agentId=agent_id, requester={"sessionKey": KEY})

    def ran(self, agent_id: str) -> dict[str, Any]:
        """A run that has been announced."""
        answer = self.ask(agent_id)
        assert answer.status_code == 201, answer.text
        return self.run(answer.json()["runId"], "announced")


@pytest.fixture(scope="module")
def server(made_data_dir: Path) -> Iterator[Canaries]:
    with new_place() as place:
        with Canaries(copied(made_data_dir, place / "data"), place / "agents") as started:
            yield started


@pytest.fixture(scope="module")
def children(server: Canaries) -> dict[str, dict[str, Any]]:
    """What became of each, once all of it is over."""
    found = {name: server.ran(name) for name in ("plain", "lines", "failing", "proposing")}
    found["lacking"] = dict(server.ask("lacking").json())
    first = server.ask("waiter").json()["runId"]
    began = server.notes / f"{first}.began"
    wait_for("the first child", began.exists)
    queued = server.ask("vanishing")
    assert queued.status_code == 201, queued.text
    (server.folder / "vanishing" / "v").unlink()
    (server.notes / f"{first}.go").touch()
    found["vanishing"] = server.run(queued.json()["runId"], "announced")
    return found


@pytest.mark.parametrize("name", ["plain", "lines", "failing"])
def test_a_child_is_given_its_credentials_and_the_record_names_the_profiles(
    server: Canaries, children: dict[str, dict[str, Any]], name: str
) -> None:
    run_id = children[name]["runId"]
    told = json.loads((server.notes / f"{run_id}.json").read_text())
    assert {variable: told.get(variable) for variable in GIVEN} == GIVEN
    events = server.http.get(f"/v1/runs/{run_id}/events").json()["items"]
    (created,) = [one for one in events if one["type"] == "SessionCreated"]
    profiles = {f"by-{kind}:default" for kind in ("variable", "file", "profile")} | {"of-main"}
    assert set(created["payload"]["plan"]["authProfiles"]) == profiles
    assert set(created["payload"]["facts"]["credentials"]["profileIds"]) == profiles


def test_what_a_child_tells_is_told_without_its_credentials(
    server: Canaries, children: dict[str, dict[str, Any]]
) -> None:
    assert children["plain"]["outcome"] == children["lines"]["outcome"] == "success"
    assert children["failing"]["outcome"] == "error"
    assert children["failing"]["error"].startswith("exited with code 3: ")
    assert "[redacted]" in children["failing"]["error"]
    for name in ("plain", "lines", "failing"):
        run_id = children[name]["runId"]
        answers = [
            server.http.get(f"/v1/runs/{run_id}{what}").text
            for what in ("", "/transcript?tools=true")
        ]
        assert all("BY_FILE_API_KEY" in text and "[redacted]" in text for text in answers), name
    announced = [one["text"] for one in server.inbox(KEY) if "BY_FILE_API_KEY" in one["text"]]
    assert len(announced) == 3
    assert all("[redacted]" in text for text in announced)


def test_a_credential_that_is_missing_refuses_the_spawn_by_its_name(
    server: Canaries, children: dict[str, dict[str, Any]]
) -> None:
    refused = children["lacking"]
    assert (refused["rule"], refused["status"]) == ("credentials", 422)
    assert 'CANARY_THAT_IS_NOT_SET of profile "lacking:default" is not set' in refused["detail"]
    explained = server.http.get(f"/v1/runs/{refused['runId']}/explain").json()
    (rule,) = [one for one in explained["decisions"] if one["rule"] == "credentials"]
    assert rule["result"] == "refused"
    assert rule["compared"]["missing"] == ["CANARY_THAT_IS_NOT_SET"]


def test_an_agent_without_its_credentials_is_not_put_in_the_place_of_another(
    server: Canaries, children: dict[str, dict[str, Any]]
) -> None:
    assert children["proposing"]["agentId"] == "proposing"
    explained = server.http.get(f"/v1/runs/{children['proposing']['runId']}/explain").json()
    (rule,) = [one for one in explained["decisions"] if one["rule"] == "override"]
    assert 'credentials of "lacking" are missing' in rule["text"]
    assert "p→lacking (pri:0 ✗)" in server.log()


def test_what_vanished_since_ends_the_run_that_cannot_be_started(
    children: dict[str, dict[str, Any]],
) -> None:
    run = children["vanishing"]
    assert (run["outcome"], run["startedAt"]) == ("error", None)
    assert 'profile "v" is in a file that is not there' in run["error"]


def test_no_credential_is_anywhere(server: Canaries, children: dict[str, dict[str, Any]]) -> None:
    ids = [str(one["runId"]) for one in children.values()]
    tokens = [
        json.loads(path.read_text())["SPAWNLOG_TOKEN"] for path in server.notes.glob("*.json")
    ]
    assert len(tokens) == 3
    wanted = [form for one in (*CANARIES, *tokens) for form in (one, *encoded(one))]
    answers = answers_about(server, ids, [KEY])
    assert [text[:200] for text in answers if any(one in text for one in wanted)] == []
    # What was encoded in lines was told in lines.
    joined = [text.replace("\\n", "").replace("\n", "") for text in answers]
    assert [text[:200] for text in joined if any(one in text for one in wanted)] == []
    assert [*tables_with(server.data_dir, wanted)] == []
    assert files_with(server.data_dir, wanted, but=[server.of_main]) == []
    assert [one for one in wanted if one in server.log()] == []
    assert files_with(server.folder, [OF_MAIN]) == [
        str(path.relative_to(server.folder)) for path in sorted(server.notes.glob("*.json"))
    ]
    assert server.of_main.name == FILE_NAME
