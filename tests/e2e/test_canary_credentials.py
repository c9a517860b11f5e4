"""Credentials are given to a child, and are nowhere else: not even when it tells them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infrastructure.outbound.credentials.auth_profiles import FILE_NAME
from tests.support.builders.folders import api_key, write_profiles
from tests.support.builders.launches import program
from tests.support.servers.canaries import answers_about, encoded, files_with, tables_with
from tests.support.servers.child_programs import waiter
from tests.support.servers.configurations import agent, command, configuration, python
from tests.support.servers.data_directories import copied, new_place
from tests.support.servers.server import Server

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
    env = {"OF_CONFIGURATION_TOKEN": IN_CONFIGURATION}
    runtime = python(_TELLER, notes, form, status, output=form, env=env)
    return agent(agent_id, runtime, agentDir=str(folder))


def canaries(folder: Path) -> dict[str, Any]:
    """Return a configuration whose agents have credentials in a folder; notes go into `notes`."""
    notes = folder / "notes"
    notes.mkdir()
    profiles = {
        "by-variable:default": api_key("by-variable", "${CANARY_VARIABLE}"),
        "by-file:default": api_key("by-file", {"file": "one.key"}),
        "by-profile:default": api_key("by-profile", IN_PROFILE),
    }
    lacking = {"lacking:default": api_key("lacking", "${CANARY_THAT_IS_NOT_SET}")}
    write_profiles(folder / "keys", profiles)
    write_profiles(folder / "lacking", lacking)
    write_profiles(folder / "vanishing", {"v": api_key("v", {"file": "v"})})
    for name in ("keys/one.key", "vanishing/v"):
        (folder / name).write_text(IN_FILE)
    script = program(folder / "proposing.sh", _PROPOSING)
    named = {"id": "p", "uri": str(script), "format": "json", "returnKey": "message"}
    proposing = {"run": [{**named, "agentIdOverrideKey": "agentId", "log": "verbose"}]}
    return configuration(
        agent("main", default=True),
        teller("plain", notes, "text", 0, folder / "keys"),
        teller("lines", notes, "jsonl", 0, folder / "keys"),
        teller("failing", notes, "text", 3, folder / "keys"),
        agent("lacking", command("true"), agentDir=str(folder / "lacking")),
        agent("vanishing", command("true"), agentDir=str(folder / "vanishing")),
        agent("proposing", subagents={"contextScripts": proposing}),
        waiter("waiter", notes),
        maxConcurrent=1,
        archiveAfterMinutes=0,
    )


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Where the agents' credentials are, outside the data directory."""
    with new_place() as place:
        yield place


@pytest.fixture(scope="module")
def server(made_data_dir: Path, folder: Path) -> Iterator[Server]:
    with new_place() as place:
        data = copied(made_data_dir, place / "data")
        write_profiles(profiles_of_main(data), {"of-main": api_key("of-main", OF_MAIN)})
        environment = {"CANARY_VARIABLE": ENVIRONMENT}
        with Server(
            data, canaries(folder), folder=folder / "notes", environment=environment
        ) as running:
            yield running


def profiles_of_main(data_dir: Path) -> Path:
    """Return the folder of the main agent's own credentials."""
    return data_dir / "agents" / "main" / "agent"


@pytest.fixture(scope="module")
def children(server: Server, folder: Path) -> dict[str, dict[str, Any]]:
    """What became of each, once all of it is over."""
    announced = ("plain", "lines", "failing", "proposing")
    found = {name: server.announced(name, session=KEY) for name in announced}
    found["lacking"] = dict(server.spawn(agentId="lacking", session=KEY).json())
    first = server.accepted("waiter", session=KEY)
    server.began(first)
    queued = server.accepted("vanishing", session=KEY)
    (folder / "vanishing" / "v").unlink()
    server.let_go(first)
    found["vanishing"] = server.run(queued, "announced")
    return found


@pytest.mark.parametrize("name", ["plain", "lines", "failing"])
def test_a_child_is_given_its_credentials_and_the_record_names_the_profiles(
    server: Server, children: dict[str, dict[str, Any]], name: str
) -> None:
    run_id = children[name]["runId"]
    told = json.loads((server.folder / f"{run_id}.json").read_text())
    assert {variable: told.get(variable) for variable in GIVEN} == GIVEN
    events = server.http.get(f"/v1/runs/{run_id}/events").json()["items"]
    (created,) = [one for one in events if one["type"] == "SessionCreated"]
    profiles = {f"by-{kind}:default" for kind in ("variable", "file", "profile")} | {"of-main"}
    assert set(created["payload"]["plan"]["authProfiles"]) == profiles
    assert set(created["payload"]["facts"]["credentials"]["profileIds"]) == profiles


def test_what_a_child_tells_is_told_without_its_credentials(
    server: Server, children: dict[str, dict[str, Any]]
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
    server: Server, children: dict[str, dict[str, Any]]
) -> None:
    refused = children["lacking"]
    assert (refused["rule"], refused["status"]) == ("credentials", 422)
    assert 'CANARY_THAT_IS_NOT_SET of profile "lacking:default" is not set' in refused["detail"]
    explained = server.http.get(f"/v1/runs/{refused['runId']}/explain").json()
    (rule,) = [one for one in explained["decisions"] if one["rule"] == "credentials"]
    assert rule["result"] == "refused"
    assert rule["compared"]["missing"] == ["CANARY_THAT_IS_NOT_SET"]


def test_an_agent_without_its_credentials_is_not_put_in_the_place_of_another(
    server: Server, children: dict[str, dict[str, Any]]
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


def test_no_credential_is_anywhere(
    server: Server, folder: Path, children: dict[str, dict[str, Any]]
) -> None:
    ids = [str(one["runId"]) for one in children.values()]
    of_main = profiles_of_main(server.data_dir) / FILE_NAME
    assert of_main.exists()
    tokens = [
        json.loads(path.read_text())["SPAWNLOG_TOKEN"] for path in server.folder.glob("*.json")
    ]
    assert len(tokens) == 3
    wanted = [form for one in (*CANARIES, *tokens) for form in (one, *encoded(one))]
    answers = answers_about(server, ids, [KEY])
    assert [text[:200] for text in answers if any(one in text for one in wanted)] == []
    # What was encoded in lines was told in lines.
    joined = [text.replace("\\n", "").replace("\n", "") for text in answers]
    assert [text[:200] for text in joined if any(one in text for one in wanted)] == []
    assert [*tables_with(server.data_dir, wanted)] == []
    assert files_with(server.data_dir, wanted, but=[of_main]) == []
    assert [one for one in wanted if one in server.log()] == []
    assert files_with(folder, [OF_MAIN]) == [
        str(path.relative_to(folder)) for path in sorted(server.folder.glob("*.json"))
    ]
