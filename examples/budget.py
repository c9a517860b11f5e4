"""Refuse spawns once the runs of today have cost enough: a hook `prepareSubagentSpawn`.

    SPAWNLOG_URL=http://127.0.0.1:8700 SPAWNLOG_TOKEN=... python examples/budget.py --dollars 20 \\
        --agent researcher=5

The token needs the scope `read` and all sessions. A running run counts with the tokens that it has
reported so far. Today is a day of UTC.
"""

import argparse
import json
import os
import urllib.parse
import urllib.request
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def spent_today(agent=None):
    """Return the cost in dollars of the runs of today, of one agent or of all."""
    query = {
        "since": datetime.now(UTC).strftime("%Y-%m-%dT00:00:00Z"),
        "totals": "true",
        "limit": 1,
    }
    if agent is not None:
        query["agentId"] = agent
    url = f"{os.environ['SPAWNLOG_URL']}/v1/runs?{urllib.parse.urlencode(query)}"
    headers = {"Authorization": f"Bearer {os.environ['SPAWNLOG_TOKEN']}"}
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=5) as answer:
        return json.load(answer)["totals"]["estimatedCostUsd"] or 0.0


def agent_budget(text):
    """Return the agent and the dollars of `AGENT=DOLLARS`."""
    agent, _, dollars = text.rpartition("=")
    return agent, float(dollars)


class Budget(BaseHTTPRequestHandler):
    def do_POST(self):
        call = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        error = self.refusal(call["event"]) if call["hook"] == "prepareSubagentSpawn" else None
        body = b"" if error is None else json.dumps({"status": "error", "error": error}).encode()
        self.send_response(200 if body else 204)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def refusal(self, event):
        """Return why the spawn is refused, or None."""
        agent = event["agentId"]
        for whose, name, dollars in (
            (None, "today", self.server.dollars),
            (agent, f"agent {agent} today", self.server.agents.get(agent)),
        ):
            if dollars is not None and (spent := spent_today(whose)) >= dollars:
                return f"the budget of ${dollars:g} for {name} is spent (${spent:.2f})"
        return None


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--port", type=int, default=8791)
    arguments.add_argument("--dollars", type=float, help="for all agents together")
    arguments.add_argument("--agent", type=agent_budget, action="append", default=[])
    given = arguments.parse_args()
    with ThreadingHTTPServer(("127.0.0.1", given.port), Budget) as server:
        server.dollars, server.agents = given.dollars, dict(given.agent)
        print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
