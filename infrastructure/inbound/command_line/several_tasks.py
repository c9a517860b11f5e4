"""Several tasks in one request: how they are given, and how their runs are shown and waited for."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from infrastructure.inbound.command_line.client.options import Output
from infrastructure.inbound.command_line.client.paging import JsonObject
from infrastructure.inbound.command_line.client.submit import follow_run, read_text_argument
from infrastructure.inbound.command_line.display.failures import CommandFailed, Refused, RunFailed
from infrastructure.inbound.command_line.display.output import print_fields, print_note, print_table
from infrastructure.inbound.command_line.display.plain_text import printable_line
from infrastructure.inbound.command_line.display.tables import TableColumn, value_of

if TYPE_CHECKING:
    from infrastructure.inbound.command_line.client.client import Client

Tasks = Annotated[
    list[str] | None,
    typer.Option("--task", metavar="TASK", help="One of several tasks, with --parallel."),
]
Parallel = Annotated[
    bool, typer.Option("--parallel", help="A run for each task, or none of them at all.")
]

_COLUMNS = (
    TableColumn("RUN", value_of("runId")),
    TableColumn("LABEL", value_of("label"), elastic=True),
    TableColumn("CHILD", value_of("childSessionKey"), elastic=True),
)


def task_members(task: str | None, tasks: Sequence[str], *, parallel: bool) -> JsonObject:
    """What is to be done, as the members of a request. CommandFailed when that is not clear."""
    given = [*([] if task is None else [task]), *tasks]
    if not given:
        raise CommandFailed("say what to do: TASK, or several times --task TASK with --parallel")
    if not parallel:
        if tasks:
            raise CommandFailed("--task is for several tasks: add --parallel, or give TASK alone")
        return {"task": read_text_argument(given[0], "task")}
    if given.count("-") > 1:
        raise CommandFailed("only one task can be read from standard input")
    return {"task": [read_text_argument(one, "task") for one in given], "parallel": True}


def print_batch(accepted: JsonObject) -> None:
    """What was accepted, for a person."""
    runs = accepted.get("runs") or ()
    print_fields({"status": accepted.get("status"), "batch": accepted.get("batchId")})
    print_table(runs, _COLUMNS)
    warnings = [warning for one in runs for warning in one.get("warnings") or ()]
    for warning in dict.fromkeys(str(one) for one in warnings):
        print_fields({"warning": warning})


def follow_batch(client: "Client", accepted: JsonObject, output: Output) -> None:
    """Wait for every run and print its result, in their order. When any did not end well, each of
    those is told of, and the first decides how this ends."""
    failures: list[CommandFailed] = []
    for run in accepted.get("runs") or ():
        try:
            follow_run(client, run, output)
        except (RunFailed, Refused) as failure:
            failures.append(failure)
    for further in failures[1:]:
        print_note(f"{further.word}: {printable_line(further, 2000)}")
    if failures:
        raise failures[0]
