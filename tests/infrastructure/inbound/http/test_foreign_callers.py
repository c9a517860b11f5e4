"""Requests under names that are not the server's: a page in a browser may be behind them."""

import pytest

from tests.support.http.problems import problem_of, well_formed_problem
from tests.support.http.requests import asked
from tests.support.http.wire import exchange, head
from tests.support.servers.http_server import House

pytestmark = pytest.mark.server

SESSION = "agent:main:main"


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "evil.example:80",
        "127.0.0.1@evil.example",
        "",
        "[",
    ],
)
def test_a_foreign_host_is_refused(house: House, host: str) -> None:
    answer = exchange(house.server.url, asked(house, "/v1/runs", ("Host", host)))
    problem_of(answer, 403, "foreign_host")


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "LOCALHOST:1", "[::1]:8700", "spawnlog.example", "Spawnlog.Example:443"]
)
def test_its_own_names_and_those_of_the_configuration_are_taken(house: House, host: str) -> None:
    answer = exchange(house.server.url, asked(house, "/v1/runs", ("Host", host)))
    assert answer.status_code == 200


def test_two_hosts_or_none_are_refused(house: House) -> None:
    for hosts in ((), ("127.0.0.1", "127.0.0.1"), ("127.0.0.1", "evil.example")):
        headers = [("Host", host) for host in hosts]
        answer = exchange(house.server.url, asked(house, "/v1/runs", *headers))
        assert answer.status_code in (400, 403)
        if answer.status_code == 403:
            problem_of(answer, 403, "foreign_host")


def test_health_is_not_told_under_a_foreign_name_either(house: House) -> None:
    answer = exchange(house.server.url, head("GET", "/healthz", {"Host": "evil.example"}))
    problem_of(answer, 403, "foreign_host")


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "null", "http://127.0.0.1.evil.example", "file://", "http://["],
)
def test_a_foreign_origin_is_refused(house: House, origin: str) -> None:
    problem_of(house.http.get("/v1/runs", headers={"Origin": origin}), 403, "foreign_origin")
    answer = house.http.post(
        "/v1/spawns",
        json={"requester": {"sessionKey": SESSION}, "task": "x"},
        headers={"Origin": origin},
    )
    problem_of(answer, 403, "foreign_origin")


def test_its_own_origin_is_taken(house: House) -> None:
    for origin in (house.server.url, "https://spawnlog.example"):
        assert house.http.get("/v1/runs", headers={"Origin": origin}).status_code == 200


def test_no_page_is_given_rights_across_origins(house: House) -> None:
    answer = house.http.options(
        "/v1/spawns",
        headers={"Origin": house.server.url, "Access-Control-Request-Method": "POST"},
    )
    well_formed_problem(answer)
    assert not [name for name in answer.headers if name.startswith("access-control")]
