"""What-if with nothing changed, about all that a server has decided: nothing may be otherwise."""

import json
from typing import Any

import httpx2

from tests.support.tiers import share

UNDECIDED = "it is still being prepared, so there is no decision to compare with"
"""What is under way has come to no decision yet."""


def differing_decisions(http: httpx2.Client, *, has_erased: bool) -> list[dict[str, Any]]:
    """The decisions that would be other ones under the configuration that they were made under.
    `has_erased`: a test has erased texts of this server, and of those nobody can know."""
    found = []
    # The plain way knows without looking that some are alike: `make test-all` tries it, too.
    for both in (False, True) if share() == 1 else (True,):
        body: dict[str, Any] = {"patch": [], "cascade": both, "prompts": both}
        answer = http.post("/v1/what-if", json=body)
        assert answer.status_code == 200, answer.text
        lines = [json.loads(line) for line in answer.text.splitlines()]
        assert "totals" in lines[-1], lines[-1]
        verdicts = [one for one in lines if "verdict" in one]
        assert len(verdicts) == lines[-1]["totals"]["decisions"]
        found += [
            {**one, "cascade": both, "prompts": both}
            for one in verdicts
            if one["verdict"] != "same"
            and not all(
                missing == UNDECIDED or (has_erased and missing.endswith("erased"))
                for missing in one["missing"] or [""]
            )
        ]
    return found
