"""Requests that the OpenAPI description permits or excludes: every response is described.

Schemathesis makes the requests from the document, and checks the responses.
"""

import base64
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from tests.support.http.described_answers import check_answer, document
from tests.support.servers.configurations import agent, configuration, scripted
from tests.support.servers.databases import Databases
from tests.support.servers.server import Server, serving
from tests.support.tiers import EXAMPLES_MIN, nightly_but, share

pytestmark = pytest.mark.server

SETTINGS = settings(
    max_examples=50 if share() == 1 else EXAMPLES_MIN,
    database=None,
    derandomize=share() != 1,
    # Without a search for a smaller example, which takes minutes: a failure tells its request.
    phases=[Phase.generate],
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.filter_too_much,
    ],
)


def without_security(described: Any) -> Any:
    """Return the description for a caller whose token is always sent."""
    if isinstance(described, dict):
        return {
            name: without_security(value) for name, value in described.items() if name != "security"
        }
    return (
        [without_security(item) for item in described] if isinstance(described, list) else described
    )


URL_CHARACTERS_MAX = 60_000
"""Longest URL that the client of the tests sends."""
SIZES = (413, 414, 431)
"""Statuses of requests that are too large to be read."""
QUICK = {"wait": "1ms", "minPosition": "1"}
"""Replacements for values that would make a request wait."""
OPERATIONS = {
    method["operationId"]: method
    for methods in document()["paths"].values()
    for method in methods.values()
}


@cache
def strategies() -> Mapping[str, Any]:
    """Return each operation as Schemathesis reads it, which is large to import."""
    import schemathesis

    described = schemathesis.openapi.from_dict(without_security(document()))
    read = [item.ok() for item in described.get_all_operations()]
    return {item.definition.raw["operationId"]: item for item in read}


@pytest.fixture(scope="module")
def lived(databases: Databases) -> Iterator[Server]:
    """Yield a server on which children of several kinds have lived."""
    config = configuration(
        agent(
            "main",
            scripted(
                steps=[{"message": "thinking"}, {"tool": {"name": "search", "output": "found"}}]
            ),
        ),
        agent("failing", scripted(outcome="error", error="it went wrong", result=None)),
        {"id": "outside", "runtime": {"type": "external"}},
        maxChildrenPerAgent=20,
    )
    config["agents"]["list"][1]["runtime"].pop("result")
    config["tools"] = {"sessions_spawn": {"attachments": {"enabled": True}}}
    with serving(databases, config) as server:
        yield server


@pytest.fixture(scope="module")
def known(lived: Server) -> dict[str, list[str]]:
    """Return values for the paths of operations, of existing things."""
    content = base64.b64encode(b"low tide").decode()
    file = {"name": "tides.txt", "content": content, "encoding": "base64"}
    runs = [
        lived.announced(label="first", attachments=[file], cleanup="keep"),
        lived.announced("failing", sharedContext={"goal": "one"}),
    ]
    ids = [run["runId"] for run in runs]
    keys = ["main", *(run["childSessionKey"] for run in runs)]
    return {"runId": ids, "id": ids, "key": keys, "revision": ["1"]}


def make_quick(case: Any) -> bool:
    """Replace values that would keep a request waiting. Return True if a request may be right now
    that was not: by that, or because an empty text counts as not given."""
    given = QUICK.keys() & set(case.query or {})
    for name in given:
        case.query[name] = QUICK[name]
    return bool(given) or "" in (case.query or {}).values()


def send(server: Server, case: Any) -> Any:
    """Send a request that Schemathesis has made, and return the answer."""
    import requests

    prepared = requests.Request(**case.as_transport_kwargs(base_url=server.url)).prepare()
    assume(len(prepared.path_url) <= URL_CHARACTERS_MAX)
    body: Any = prepared.body or b""
    headers: dict[str, Any] = dict(prepared.headers)
    headers.pop("Content-Length", None)
    return server.http.request(
        str(prepared.method),
        prepared.path_url,
        headers=headers,
        content=body.encode() if isinstance(body, str) else body,
    )


CASES = [(name, "positive") for name in OPERATIONS]
# The table of faults also tries values that the schemas exclude.
CASES += [
    (name, "negative")
    for name, operation in OPERATIONS.items()
    if operation.get("parameters") or operation.get("requestBody")
]
PARAMETERS = nightly_but(CASES, lambda case: case[1] == "positive")


@pytest.mark.parametrize(("name", "mode"), PARAMETERS)
def test_every_answer_is_as_described(
    lived: Server, known: dict[str, list[str]], name: str, mode: str
) -> None:
    from schemathesis.checks import not_a_server_error
    from schemathesis.generation import GenerationMode
    from schemathesis.specs.openapi import checks

    operation = strategies()[name]

    @SETTINGS
    @given(case=operation.as_strategy(GenerationMode(mode)), data=st.data())
    def try_one(case: Any, data: st.DataObject) -> None:
        for parameter in case.path_parameters or {}:
            if data.draw(st.integers(0, 3)):
                case.path_parameters[parameter] = data.draw(st.sampled_from(known[parameter]))
        is_changed = make_quick(case)
        answer = send(lived, case)
        looked_at = [
            not_a_server_error,
            checks.status_code_conformance,
            checks.content_type_conformance,
            checks.response_schema_conformance,
        ]
        if mode == "negative" and answer.status_code not in SIZES and not is_changed:
            looked_at.append(checks.negative_data_rejection)
        case.validate_response(answer, checks=looked_at)
        check_answer(answer)

    try_one()
