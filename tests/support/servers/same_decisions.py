"""What-if under unchanged configurations: every recorded decision must be the same."""

import json
from typing import Any

import httpx2

from tests.support.tiers import share

UNDECIDED = "it is still being prepared, so there is no decision to compare with"
"""Text about a spawn in preparation, which has no decision yet."""


def differing_decisions(http: httpx2.Client, *, has_erased: bool) -> list[dict[str, Any]]:
    """Return the decisions that differ under their own configuration.

    With `has_erased`, a test has erased texts of this server, so that some decisions are unknown.
    """
    found = []
    # Without cascade and prompts, some decisions are skipped as equal: `make test-all` covers that.
    for both in (False, True) if share() == 1 else (True,):
        body: dict[str, Any] = {"patch": [], "cascade": both, "prompts": both}
        answer = http.post("/v1/what-if", json=body)
        assert answer.status_code == 200, answer.text
        lines = [json.loads(line) for line in answer.text.splitlines()]
        assert "totals" in lines[-1], lines[-1]
        verdicts = [line for line in lines if "verdict" in line]
        assert len(verdicts) == lines[-1]["totals"]["decisions"]
        found += [
            {**verdict_line, "cascade": both, "prompts": both}
            for verdict_line in verdicts
            if verdict_line["verdict"] != "same"
            and not all(
                missing == UNDECIDED or (has_erased and missing.endswith("erased"))
                for missing in verdict_line["missing"] or [""]
            )
        ]
    return found
