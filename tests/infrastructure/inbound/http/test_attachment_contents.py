"""What attached files hold stands in the child's workspace while it is wanted, and nowhere else."""

import base64
import uuid
from typing import Any

import pytest

from tests.support.servers.attachment_server import AttachingHouse, text
from tests.support.servers.canaries import answers_about, files_with, tables_with

pytestmark = pytest.mark.server


class Canary:
    """Two files that say what nothing else says, and whatever that could be stored as."""

    def __init__(self) -> None:
        plain, packed = (f"canary-{uuid.uuid4().hex}" for _ in range(2))
        encoded = base64.b64encode(packed.encode()).decode()
        self.name = f"{uuid.uuid4().hex}.txt"
        self.contents = (plain, packed, encoded)
        self.files: list[dict[str, Any]] = [
            text(self.name, plain),
            {"name": "packed.bin", "content": encoded, "encoding": "base64"},
        ]


def found_anywhere(
    house: AttachingHouse, answer: dict[str, Any], canaries: tuple[str, ...], session: str
) -> list[str]:
    """Where they stand: in a table, a file, the log or an answer. The database's own files are left
    out, for it keeps what was deleted for a while."""
    data = house.server.data_dir
    found = list(tables_with(data, canaries))
    for place in (house.ground, house.gates.folder, *data.iterdir()):
        if place.is_dir() and place.name != "postgres":
            found += [f"{place.name}/{name}" for name in files_with(place, canaries)]
    told = [
        house.server.log(),
        str(answer),
        *answers_about(house.server, [answer["runId"]], [session]),
    ]
    return [*found, *(one[:200] for one in told if any(canary in one for canary in canaries))]


def test_contents_stand_in_the_workspace_alone_and_then_nowhere(
    attaching: AttachingHouse,
) -> None:
    canary = Canary()
    with attaching.waiting(canary.files) as answer:
        folder = f"workspaces/holder/{answer['attachments']['relDir']}"
        found = found_anywhere(attaching, answer, canary.contents, answer["childSessionKey"])
        assert sorted(found) == [f"{folder}/{canary.name}", f"{folder}/packed.bin"]
    attaching.undone(answer["runId"])
    assert found_anywhere(attaching, answer, canary.contents, answer["childSessionKey"]) == []


def test_contents_that_are_kept_stand_in_the_workspace_alone(retaining: AttachingHouse) -> None:
    canary = Canary()
    answer = retaining.attached(canary.files)
    retaining.server.run(answer["runId"], "announced")
    found = found_anywhere(retaining, answer, canary.contents, answer["childSessionKey"])
    folder = f"workspaces/main/{answer['attachments']['relDir']}"
    assert sorted(found) == [f"{folder}/{canary.name}", f"{folder}/packed.bin"]


@pytest.mark.parametrize(
    ("agent_id", "last"), [("main", ".."), ("nobody-knows", "fine")], ids=["name", "agent"]
)
def test_contents_of_what_is_refused_stand_nowhere(
    attaching: AttachingHouse, agent_id: str, last: str
) -> None:
    canary, session = Canary(), attaching.session()
    files = [*canary.files, text(last)]
    answer = attaching.attach(files, agentId=agent_id, requester={"sessionKey": session})
    assert answer.status_code == 422, answer.text
    assert found_anywhere(attaching, dict(answer.json()), canary.contents, session) == []


def test_names_stand_in_no_event_and_not_in_the_log(attaching: AttachingHouse) -> None:
    canary = Canary()
    answer = attaching.attached(canary.files)
    attaching.server.run(answer["runId"], "announced")
    events = attaching.http.get(f"/v1/runs/{answer['runId']}/events").text
    hashes = [file["sha256"] for file in answer["attachments"]["files"]]
    for kept_out in (canary.name, "packed.bin", *hashes):
        assert kept_out not in events
        assert kept_out not in attaching.server.log()


def test_names_are_told_to_those_alone_who_may_read_texts(attaching: AttachingHouse) -> None:
    answer = attaching.attached(Canary().files)
    with attaching.with_token(attaching.secrets["reader"]) as http:
        run = http.get(f"/v1/runs/{answer['runId']}").json()
    receipt = answer["attachments"]
    assert run["attachments"].pop("state") in ("written", "removing", "removed")
    assert run["attachments"] == {name: receipt[name] for name in receipt if name != "files"}
    assert run["attachments"]["count"] == 2
