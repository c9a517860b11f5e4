"""Calls and answers of the scripted models of all adapters."""

TASKS = (
    {"task": "Count the ships", "agent_id": "counter"},
    {"task": "Who goes there?", "agent_id": "stranger"},
)


def answer_from(results: list[str]) -> str:
    """Return the results, one per line."""
    return "\n".join(results)
