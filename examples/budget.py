"""Refuse spawns once the runs of today have cost enough: a hook `prepareSubagentSpawn`.

    SPAWNLOG_URL=http://127.0.0.1:8700 SPAWNLOG_TOKEN=... python examples/budget.py --dollars 20

The token needs the scope `read`. Runs count when they have ended, and today is a day of UTC.
"""

import argparse
import json
import os
import urllib.request
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def spent_today():
    """Return the cost in dollars of the runs of today that have ended."""
    today = datetime.now(UTC).strftime("%Y-%m-%dT00:00:00Z")
    url = f"{os.environ['SPAWNLOG_URL']}/v1/runs?since={today}&totals=true&limit=1"
    headers = {"Authorization": f"Bearer {os.environ['SPAWNLOG_TOKEN']}"}
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=5) as answer:
        return json.load(answer)["totals"]["estimatedCostUsd"] or 0.0


class Budget(BaseHTTPRequestHandler):
    def do_POST(self):
        call = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        is_spawn = call["hook"] == "prepareSubagentSpawn"
        status = 402 if is_spawn and spent_today() >= self.server.dollars else 204
        self.send_response(status)
        self.end_headers()


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--port", type=int, default=8791)
    arguments.add_argument("--dollars", type=float, required=True)
    given = arguments.parse_args()
    with ThreadingHTTPServer(("127.0.0.1", given.port), Budget) as server:
        server.dollars = given.dollars
        print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
