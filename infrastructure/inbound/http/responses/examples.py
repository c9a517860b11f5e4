"""Examples of requests and responses by operation, and a text for each problem.

They are data in `examples.json`. Tests check them against the models and against real answers.
"""

from pathlib import Path
from typing import Any

import orjson

from domain.run.facts import AdmissionFacts
from domain.spawn.admission import ADMISSION

FILE = "infrastructure/inbound/http/responses/examples.json"
_DOCUMENT = orjson.loads(Path(__file__).with_name("examples.json").read_bytes())
EXAMPLES: dict[str, dict[str, Any]] = _DOCUMENT["operations"]
PROBLEMS: dict[str, str] = _DOCUMENT["problems"]

_FACTS = AdmissionFacts(
    requester_agent_id="main",
    agent_id_argument_given=True,
    target_agent_id="counter",
    mode="run",
    thread=False,
    caller_depth=0,
    depth_from="record",
    max_spawn_depth=1,
    active_children=2,
    max_children=5,
    require_agent_id=False,
    require_agent_id_from="defaults",
    allow_agents=("main", "counter"),
    allow_agents_from="agent",
)


def example_of(name: str, kind: str, status: str = "") -> Any:
    """Return an example of an operation: its `request`, `response`, `stream` or `lines`.

    Args:
        name: Name of the operation.
        kind: The kind of example.
        status: Status of a response; one in `responses` has precedence over `response`.

    Raises:
        LookupError: The operation has no such example.
    """
    examples = EXAMPLES.get(name, {})
    responses = examples.get("responses", {})
    if status in responses:
        return responses[status]
    if kind not in examples:
        raise LookupError(f"{name} has no example: write `operations.{name}.{kind}` into {FILE}")
    return examples[kind]


def _admission_decisions() -> list[dict[str, Any]]:
    """Return decisions that are made from the rules, so that no rule is repeated here."""
    findings = [(check.rule.name, check.compared(_FACTS, False)) for check in ADMISSION]
    return [
        {
            "step": "admission",
            "rule": rule,
            "result": "passed",
            "compared": finding.compared,
            "text": finding.text,
            "position": 1204,
            "configRevision": 3,
        }
        for rule, finding in findings
    ]


EXPLANATION = EXAMPLES["explainRun"]["response"]
EXPLANATION["decisions"] = [*_admission_decisions(), *EXPLANATION["decisions"]]
