"""A model with the tools of one server, which calls each of them once: a client for the conformance
suite, `python -m mcp_clients.conformance_client URL`.

It is the product's runtime `model`: the suite is its server of tools, and the endpoint that the
model speaks through says what it was told.
"""

import asyncio
import json
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from infrastructure.outbound.runtimes.model import ModelRuntimes
from tests.support.builders.launches import all_of, model_launch
from tests.support.servers.model_endpoint import ModelEndpoint, call, said, text

SERVER = "suite"
SECONDS_MAX = 25
SAMPLES: Mapping[str, Any] = {"number": 2, "integer": 2, "boolean": True, "array": [], "object": {}}
CONTEXT = "MCP_CONFORMANCE_CONTEXT"
"""Where the suite says which calls it wants, if it wants certain ones."""


async def main(url: str) -> None:
    """Two runs: one sees what there is, and one calls it."""
    async with ModelEndpoint() as endpoint:
        endpoint.answers("m", said(text("I see.")))
        await _run(endpoint, url)
        if not endpoint.bodies:
            sys.exit("the tools cannot be had, so that no model was asked")
        offered = [one["function"] for one in endpoint.bodies[-1].get("tools", ())]
        calls = [
            call(name, number, **arguments)
            for number, (name, arguments) in enumerate(_calls(offered))
        ]
        if calls:
            endpoint.answers("m", said(*calls, calls=True), said(text("Done.")))
            await _run(endpoint, url)


async def _run(endpoint: ModelEndpoint, url: str) -> None:
    launch = model_launch(endpoint.url, model="m", mcpServers={SERVER: {"url": url}})
    async with asyncio.timeout(SECONDS_MAX):
        session = await ModelRuntimes().open(launch)
        session.go()
        entries, end = await all_of(session)
    print([entry.body for entry in entries], end)


def _calls(offered: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    wanted = json.loads(os.environ.get(CONTEXT, "{}")).get("toolCalls")
    if wanted is not None:
        for one in wanted:
            yield f"{SERVER}_{one['name']}", one.get("arguments", {})
        return
    for tool in offered:
        properties = tool["parameters"].get("properties", {})
        given = {name: SAMPLES.get(one.get("type"), "x") for name, one in properties.items()}
        if "schema" in given:
            # The suite wants to hear what the model was shown of its first tool.
            given["schema"] = offered[0]["parameters"]
        yield tool["name"], given


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
