"""Receipts of context scripts, for tests."""

from typing import Any

from domain.run.facts import Candidate, ScriptReceipt
from tests.support.builders.facts import fact_of
from tests.support.builders.storytelling import ref


def receipt(name: str, outcome: str, **changes: Any) -> ScriptReceipt:
    plain = {
        "id": name,
        "uri": f"/scripts/{name}",
        "format": "json",
        "priority": 1.0,
        "position": "prepend",
        "outcome": outcome,
        "duration_ms": 31,
        "output": ref("printed"),
        "error": ref("secret error"),
    }
    return fact_of(ScriptReceipt, plain | changes)


def candidate(script: str, agent_id: str | None, verdict: str = "winner") -> Candidate:
    return Candidate(script_id=script, priority=1.0, agent_id=agent_id, verdict=verdict)
