"""`spawnlog spawn`: spawn one sub-agent, or several as a batch."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infrastructure.inbound.command_line.client.arguments import (
    read_request,
    read_text_argument,
)
from infrastructure.inbound.command_line.client.described import OperationOptions, OptionsOf
from infrastructure.inbound.command_line.client.options import ApiOptions, RequesterOption
from infrastructure.inbound.command_line.client.submit import (
    SubmitOptions,
    follow_run,
    post_or_print_refusal,
    print_accepted,
    print_run_ids,
)
from infrastructure.inbound.command_line.display.failures import (
    CommandError,
    CommandInterruptedError,
    FailedRunError,
    RequestRefusedError,
)
from infrastructure.inbound.command_line.display.output import (
    JsonObject,
    print_fields,
    print_note,
    print_object,
    print_table,
)
from infrastructure.inbound.command_line.display.output_form import Output
from infrastructure.inbound.command_line.display.plain_text import printable_line
from infrastructure.inbound.command_line.display.run import attachments_summary
from infrastructure.inbound.command_line.display.tables import TableColumn, value_of

if TYPE_CHECKING:
    from infrastructure.inbound.command_line.client.client import CommandClient


Tasks = Annotated[
    list[str] | None,
    typer.Option(
        "--task",
        metavar="TASK",
        help="Task of a batch; repeat it for each. Requires --parallel. - reads standard input.",
    ),
]
Parallel = Annotated[
    bool, typer.Option("--parallel", help="Start one run per task: all of them, or none.")
]
_COLUMNS = (
    TableColumn("RUN", value_of("runId")),
    TableColumn("LABEL", value_of("label"), elastic=True),
    TableColumn("CHILD", value_of("childSessionKey"), elastic=True),
)


def task_members(task: str | None, tasks: Sequence[str], *, parallel: bool) -> JsonObject:
    """Return the task members of a request. Raise CommandError if none or too many are given."""
    given = [*([] if task is None else [task]), *tasks]
    if not given:
        raise CommandError("give TASK, or --parallel with a --task TASK for each task")
    if not parallel:
        if tasks:
            raise CommandError("--task needs --parallel: add it, or give TASK alone")
        return {"task": read_text_argument(given[0], "task")}
    return {"task": [read_text_argument(text, "task") for text in given], "parallel": True}


def _print_batch(accepted: JsonObject, *, quiet: bool) -> None:
    runs = accepted.get("runs") or ()
    if quiet:
        print_run_ids(runs)
        return
    print_fields({"status": accepted.get("status"), "batch": accepted.get("batchId")})
    print_table(runs, _COLUMNS)
    warnings = [str(warning) for run in runs for warning in run.get("warnings") or ()]
    for warning in dict.fromkeys(warnings):
        print_fields({"warning": warning})


def follow_batch(
    client: "CommandClient", accepted: JsonObject, output: Output, *, quiet: bool
) -> None:
    """Wait for every run and print the results in order.

    Raises:
        RunFailed, RequestRefused: The first failure; the others are printed as notes.
        Interrupted: Ctrl-C was pressed; the runs continue.
    """
    failures: list[CommandError] = []
    runs = accepted.get("runs") or ()
    for number, run in enumerate(runs):
        try:
            follow_run(client, run, output, quiet=quiet)
        except (FailedRunError, RequestRefusedError) as failure:
            failures.append(failure)
        except CommandInterruptedError as interrupted:
            rest = [printable_line(run.get("runId")) for run in runs[number + 1 :]]
            if rest:
                print_note(f"not waited for: run {', run '.join(rest)}")
            raise interrupted from None
    for further in failures[1:]:
        print_note(f"{further.word}: {printable_line(further, 2000)}")
    if failures:
        raise failures[0]


SPAWNS = "/v1/spawns"
_UNKNOWN_OUTCOME = "the spawn may or may not have been accepted"
RequestFile = Annotated[
    Path | None,
    typer.Option(
        "--file",
        metavar="FILE",
        help="JSON file with the request; other options override it. - reads standard input.",
    ),
]
TaskArgument = Annotated[
    str | None,
    typer.Argument(metavar="TASK", help="Task of the sub-agent; - reads standard input."),
]


def spawn(
    task: TaskArgument = None,
    tasks: Tasks = None,
    parallel: Parallel = False,
    requester: RequesterOption = "main",
    file: RequestFile = None,
    *,
    given: Annotated[OperationOptions, OptionsOf("spawn")],
    submit: SubmitOptions,
    api: ApiOptions,
) -> None:
    """Spawn a sub-agent, or several.

    Options or --file give the request. For several, repeat --task and add --parallel. With --wait,
    a terminal shows the progress. Exit status 3 for a refusal; with --wait, 1 for a failed run.
    """
    with api.client() as client:
        members = given.body(client)
        origin = members.pop("requester", {})
        body = read_request(file) if file is not None else {}
        asking = body.get("requester")
        known = asking if isinstance(asking, dict) else {}
        body["requester"] = {"sessionKey": requester, **known, **origin}
        if file is None or task is not None or tasks:
            body |= task_members(task, tasks or (), parallel=parallel)
        body |= members
        parallel = parallel or isinstance(body.get("task"), list)
        accepted = post_or_print_refusal(
            client, SPAWNS, body, submit.idempotency_key, _UNKNOWN_OUTCOME, api.output
        )
        if submit.wait:
            follow = follow_batch if parallel else follow_run
            follow(client, accepted, api.output, quiet=submit.quiet)
        elif not print_object(accepted, api.output):
            (_print_batch if parallel else _print_spawned)(accepted, quiet=submit.quiet)


def _print_spawned(accepted: JsonObject, *, quiet: bool) -> None:
    print_accepted(
        accepted,
        {
            "status": accepted.get("status"),
            "run": accepted.get("runId"),
            "child": accepted.get("childSessionKey"),
            "label": accepted.get("label"),
            "mode": accepted.get("mode"),
            "attached": attachments_summary(accepted.get("attachments")),
        },
        quiet=quiet,
    )
