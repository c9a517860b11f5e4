"""What-if with nothing changed, about all that a server has decided: nothing may be otherwise."""

import json
from typing import Any

import httpx2

UNDECIDED = "it is still being prepared, so there is nothing to compare with"
"""What is under way has come to no decision yet."""


def differing_decisions(http: httpx2.Client) -> list[dict[str, Any]]:
    """The decisions that would be other ones under the configuration that they were made under."""
    found = []
    for both in (False, True):
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
            if one["verdict"] != "same" and not all(map(_is_unknown, one["missing"] or [""]))
        ]
    return found


def _is_unknown(missing: str) -> bool:
    """Whether nobody can know it: it is not decided yet, or its texts were erased by a test."""
    return missing == UNDECIDED or missing.endswith("erased")
