"""What the scripted models of all adapters ask for, and what they answer."""

TASKS = (
    {"task": "Count the ships", "agent_id": "counter"},
    {"task": "Who goes there?", "agent_id": "stranger"},
)


def answer_from(results: list[str]) -> str:
    """All of them, in a line each."""
    return "\n".join(results)
