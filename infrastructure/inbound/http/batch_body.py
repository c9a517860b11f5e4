"""What a request says of its tasks: one, or a list of them for as many runs."""

from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

from infrastructure.inbound.http.requests.caller import invalid_value
from infrastructure.inbound.http.responses.problems import HttpProblem

TASKS_MAX = 50
TASK_BYTES_MAX = 8 * 1024 * 1024
LABEL_CHARS_MAX = 200


TaskField = Annotated[
    Any,
    WithJsonSchema(
        {"anyOf": [{"type": "string"}, {"items": {"type": "string"}, "type": "array"}]},
    ),
    Field(description="With `parallel` a list: a run for each of them, or for none."),
]


def tasks_of(task: object, *, parallel: bool, label: str | None, attached: int) -> tuple[str, ...]:
    """The tasks of a batch; none for a request with one task by itself. 422 for tasks that cannot
    be used."""
    if isinstance(task, str):
        if parallel:
            raise invalid_value("/parallel", "needs a list of tasks")
        _must_be_tasks({"/task": task})
        return ()
    if not isinstance(task, list):
        raise invalid_value("/task", "must be a text, or a list of texts")
    if not parallel:
        raise invalid_value("/task", "a list of tasks needs parallel: true")
    if not task:
        raise invalid_value("/task", "has no task")
    if len(task) > TASKS_MAX:
        raise invalid_value("/task", f"has {len(task)} tasks and may have {TASKS_MAX}")
    for number, one in enumerate(task):
        if not isinstance(one, str):
            raise invalid_value(f"/task/{number}", "must be a text")
    _must_be_tasks({f"/task/{number}": one for number, one in enumerate(task)})
    last = f"{label}-{len(task)}" if label else ""
    if len(last) > LABEL_CHARS_MAX:
        raise invalid_value(
            "/label", f"has {len(last)} characters with its number, and may have {LABEL_CHARS_MAX}"
        )
    if attached and len(task) > 1:
        raise invalid_value("/attachments", "are for one task; spawn them one by one")
    return tuple(task)


def _must_be_tasks(tasks: dict[str, str]) -> None:
    for pointer, task in tasks.items():
        if not task.strip():
            raise invalid_value(pointer, "task required")
    if sum(len(task.encode()) for task in tasks.values()) > TASK_BYTES_MAX:
        who = "a task" if len(tasks) == 1 else "all tasks together"
        raise HttpProblem("too_large", f"{who} may have {TASK_BYTES_MAX} bytes at most")
