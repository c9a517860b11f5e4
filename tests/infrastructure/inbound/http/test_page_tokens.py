"""A code for the page, its token, and what is on record of who used that."""

import httpx2
import pytest

from tests.support.http.problems import problem_of
from tests.support.servers.http_server import House

pytestmark = pytest.mark.server


def traded(house: House) -> str:
    """A token of the page."""
    code = house.http.post("/v1/page-codes").json()["code"]
    answer = httpx2.post(f"{house.server.url}/v1/page-tokens", json={"code": code})
    assert answer.status_code == 201
    assert answer.json()["expiresInSeconds"] == 12 * 3600
    again = httpx2.post(f"{house.server.url}/v1/page-tokens", json={"code": code})
    assert "spawnlog open" in problem_of(again, 401, "unauthorized")["detail"]
    return str(answer.json()["token"])


def test_what_is_done_by_the_page_is_on_record_as_done_by_the_token_that_asked(
    house: House,
) -> None:
    token, session = traded(house), house.session()
    with house.with_token(token) as page:
        assert page.get("/v1/me").json() == house.http.get("/v1/me").json()
        body = {"requester": {"sessionKey": session}, "task": "by the page", "agentId": "main"}
        answer = page.post("/v1/spawns", json=body)
        assert answer.status_code == 201
        problem_of(page.post("/v1/page-codes"), 403, "not_permitted")
        assert page.delete("/v1/page-tokens/current").json() == {"wasKnown": True}
        problem_of(page.get("/v1/me"), 401, "unauthorized")
    events = house.http.get("/v1/events", params={"runId": answer.json()["runId"]})
    first = events.json()["items"][0]
    assert (first["actor"]["kind"], first["actor"]["token"]) == ("token", "admin")
    assert token not in events.text
    assert house.http.delete("/v1/page-tokens/current").json() == {"wasKnown": False}
