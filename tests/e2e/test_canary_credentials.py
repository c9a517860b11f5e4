"""Credentials are given to a child, and appear nowhere else, even if it prints them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infrastructure.outbound.credentials.auth_profiles import FILE_NAME
from tests.support.builders.folders import api_key, write_profiles
from tests.support.servers.canaries import answers_about, encoded, files_with, tables_with
from tests.support.servers.configurations import agent, configuration, python
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
TELLERS = ("plain", "lines", "failing")
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


def teller(agent_id: str, notes: Path, form: str, status: int, folder: Path) -> dict[str, Any]:
    """Return an agent that prints its whole input, to both outputs."""
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
    write_profiles(folder / "keys", profiles)
    (folder / "keys" / "one.key").write_text(IN_FILE)
    return configuration(
        agent("main", default=True),
        teller("plain", notes, "text", 0, folder / "keys"),
        teller("lines", notes, "jsonl", 0, folder / "keys"),
        teller("failing", notes, "text", 3, folder / "keys"),
        archiveAfterMinutes=0,
    )


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Yield the folder of the agents' credentials, outside the data directory."""
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
def children(server: Server) -> dict[str, dict[str, Any]]:
    """Return the announced run of each teller."""
    return {name: server.announced(name, session=KEY) for name in TELLERS}


@pytest.mark.parametrize("name", TELLERS)
def test_child_is_given_credentials_and_record_names_profiles(
    server: Server, children: dict[str, dict[str, Any]], name: str
) -> None:
    run_id = children[name]["runId"]
    answer = json.loads((server.folder / f"{run_id}.json").read_text())
    assert {variable: answer.get(variable) for variable in GIVEN} == GIVEN
    events = server.http.get(f"/v1/runs/{run_id}/events").json()["items"]
    (created,) = [event for event in events if event["type"] == "SessionCreated"]
    profiles = {f"by-{kind}:default" for kind in ("variable", "file", "profile")} | {"of-main"}
    assert set(created["payload"]["plan"]["authProfiles"]) == profiles
    assert set(created["payload"]["facts"]["credentials"]["profileIds"]) == profiles


def test_child_tells_without_its_credentials(
    server: Server, children: dict[str, dict[str, Any]]
) -> None:
    assert children["plain"]["outcome"] == children["lines"]["outcome"] == "success"
    assert children["failing"]["outcome"] == "error"
    assert children["failing"]["error"].startswith("exited with code 3: ")
    assert "[redacted]" in children["failing"]["error"]
    for name in TELLERS:
        run_id = children[name]["runId"]
        answers = [
            server.http.get(f"/v1/runs/{run_id}{suffix}").text
            for suffix in ("", "/transcript?tools=true")
        ]
        assert all("BY_FILE_API_KEY" in text and "[redacted]" in text for text in answers), name
    announced = [
        announcement["text"]
        for announcement in server.inbox(KEY)
        if "BY_FILE_API_KEY" in announcement["text"]
    ]
    assert len(announced) == 3
    assert all("[redacted]" in text for text in announced)


def test_credential_is_nowhere_else(
    server: Server, folder: Path, children: dict[str, dict[str, Any]]
) -> None:
    ids = [str(child["runId"]) for child in children.values()]
    of_main = profiles_of_main(server.data_dir) / FILE_NAME
    assert of_main.exists()
    tokens = [
        json.loads(path.read_text())["SPAWNLOG_TOKEN"] for path in server.folder.glob("*.json")
    ]
    assert len(tokens) == 3
    wanted = [form for canary in (*CANARIES, *tokens) for form in (canary, *encoded(canary))]
    answers = answers_about(server, ids, [KEY])
    assert [text[:200] for text in answers if any(item in text for item in wanted)] == []
    # Texts that were encoded in lines are checked with their lines joined.
    joined = [text.replace("\\n", "").replace("\n", "") for text in answers]
    assert [text[:200] for text in joined if any(item in text for item in wanted)] == []
    assert [*tables_with(server.data_dir, wanted)] == []
    assert files_with(server.data_dir, wanted, but=[of_main]) == []
    assert [item for item in wanted if item in server.log()] == []
    assert files_with(folder, [OF_MAIN]) == [
        str(path.relative_to(folder)) for path in sorted(server.folder.glob("*.json"))
    ]
