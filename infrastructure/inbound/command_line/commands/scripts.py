"""`spawnlog script test`: runs an agent's context scripts for a trial spawn."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from infrastructure.inbound.command_line.client.arguments import read_text_argument
from infrastructure.inbound.command_line.client.global_options import OutputOption
from infrastructure.inbound.command_line.client.options import ConfigFile, HomeDir, RequesterOption
from infrastructure.inbound.command_line.display.failures import FailedRunError
from infrastructure.inbound.command_line.display.output import (
    print_block,
    print_fields,
    print_note,
    print_object,
    print_table,
)
from infrastructure.inbound.command_line.display.output_form import Output
from infrastructure.inbound.command_line.display.plain_text import printable_line
from infrastructure.inbound.command_line.display.tables import TableColumn, value_of

if TYPE_CHECKING:
    from application.context.script_trial import TrialResult, TrialRun


_COLUMNS = (
    TableColumn("SCRIPT", value_of("id"), elastic=True),
    TableColumn("OUTCOME", value_of("outcome"), coloured=True),
    TableColumn("PLACE", value_of("position")),
    TableColumn("ENDED", lambda row: _format_end(row.get("statusCode"), row.get("exitCode"))),
    TableColumn("MS", value_of("durationMs"), right=True),
    TableColumn("BYTES", value_of("outputBytes"), right=True),
    TableColumn("PROPOSES", value_of("candidate"), folds=True),
)
_PLACES = {"prepend": "before", "append": "after"}


def run_scripts(
    agent: Annotated[
        str,
        typer.Argument(
            metavar="AGENT", help="Agent of the child, or an alias.", show_default=False
        ),
    ],
    task: Annotated[
        str,
        typer.Option(
            "--task", metavar="TASK", help="Task of the trial spawn; - reads standard input."
        ),
    ],
    label: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Label of the trial spawn.")
    ] = None,
    requester: RequesterOption = "main",
    cleanup: Annotated[
        Literal["delete", "keep"] | None, typer.Option(help="Value of cleanup for the trial spawn.")
    ] = None,
    config: ConfigFile = None,
    data_dir: HomeDir = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Run an agent's context scripts without a spawn.

    Prints the output of each script, the text before and after the task, and the agent that would
    run.

    The scripts really run, on this machine, with SPAWNLOG_SCRIPT_TEST=1. No server is asked and
    nothing is recorded: the scripts are those of the file that --config or SPAWNLOG_CONFIG names.
    Exit status 1 if a script fails.
    """
    from infrastructure.contract.operations import ScriptTrialOptions, ServeOptions
    from infrastructure.server.operations import try_scripts

    tried = ScriptTrialOptions(
        agent=agent,
        task=read_text_argument(task, "task"),
        requester=requester,
        label=label,
        cleanup=cleanup,
    )
    trial = try_scripts(ServeOptions(config=config, data_dir=data_dir), tried)
    body = _trial_json(trial)
    if not print_object(body, output):
        _print_trial(trial, body, config)
    if trial.failed:
        some = "a script" if len(trial.failed) == 1 else f"{len(trial.failed)} scripts"
        raise FailedRunError(f"{some} failed: {printable_line(', '.join(trial.failed), 1000)}")


def _trial_json(trial: "TrialResult") -> dict[str, Any]:
    return {
        "agentId": trial.request.agent_id,
        "configured": trial.is_configured,
        "scripts": [_script_json(run) for run in trial.runs],
        "candidates": [candidate.members() for candidate in trial.candidates],
        "runsAs": trial.agent_id,
        "message": trial.message.text,
        "parts": [part._asdict() for part in trial.message.parts],
    }


def _script_json(run: "TrialRun") -> dict[str, Any]:
    texts = {"output": run.output, "content": run.content, "error": run.error}
    left_out = {"output", "injected", "error", "outputHmac"}
    plain = run.receipt.members().items()
    return {name: value for name, value in plain if name not in left_out} | texts


def _print_trial(trial: "TrialResult", body: dict[str, Any], config: Path | None) -> None:
    if not trial.is_configured:
        name = printable_line(trial.request.agent_id)
        print_note(f'agent "{name}" is not configured: it gets the default scripts')
    print_table(body["scripts"], _COLUMNS)
    for script in body["scripts"]:
        if script["error"]:
            print_note(f"{printable_line(script['id'])}: {printable_line(script['error'], 1000)}")
    print()
    print_fields(
        {
            "configuration": config,
            "agent": trial.request.agent_id,
            "candidates": ", ".join(map(_format_candidate, body["candidates"])) or "none",
            "runs as": _format_agent(trial),
        }
    )
    for script in body["scripts"]:
        if script["content"] is not None:
            print(
                f"\n{printable_line(script['id'])} adds {_PLACES[script['position']]} the task:\n"
            )
            print_block(script["content"])
    print("\nmessage:\n")
    print_block(trial.message.text)


def _format_agent(trial: "TrialResult") -> str:
    if trial.is_configured or trial.agent_id != trial.request.agent_id:
        return trial.agent_id
    return "no agent: a spawn of it is refused (rule agent_unknown)"


def _format_candidate(candidate: dict[str, Any]) -> str:
    agent_id = candidate["agentId"] or "(no agent id)"
    return f"{candidate['scriptId']}→{agent_id} ({candidate['verdict']})"


def _format_end(status: object, code: object) -> str | None:
    if status is not None:
        return f"HTTP {status}"
    return None if code is None else f"exit {code}"
