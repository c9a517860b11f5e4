"""`spawnlog script test`: what an agent's context scripts would do to a spawn."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from infrastructure.inbound.command_line.client.arguments import read_text_argument
from infrastructure.inbound.command_line.client.global_options import OutputOption
from infrastructure.inbound.command_line.client.options import ConfigFile, HomeDir, RequesterOption
from infrastructure.inbound.command_line.display.failures import RunFailed
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
    TableColumn("STANDS", value_of("position")),
    TableColumn("ENDED", lambda row: _format_end(row.get("statusCode"), row.get("exitCode"))),
    TableColumn("MS", value_of("durationMs"), right=True),
    TableColumn("BYTES", value_of("outputBytes"), right=True),
    TableColumn("PROPOSES", value_of("candidate"), folds=True),
)
_PLACES = {"prepend": "in front of", "append": "behind"}


def run_scripts(
    agent: Annotated[
        str, typer.Argument(metavar="AGENT", help="Agent, or an alias of one.", show_default=False)
    ],
    task: Annotated[
        str, typer.Option("--task", help="What it would be asked; - reads it from standard input.")
    ],
    label: Annotated[str | None, typer.Option(help="A name for the run.")] = None,
    requester: RequesterOption = "main",
    cleanup: Annotated[
        Literal["delete", "keep"] | None, typer.Option(help="As a spawn would say it.")
    ] = None,
    config: ConfigFile = None,
    data_dir: HomeDir = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Run an agent's context scripts without a spawn.

    Shows what each gives, what would stand before the task and after it, and which agent would run.

    The scripts run for real, on this machine, with SPAWNLOG_SCRIPT_TEST=1; no server is asked, and
    nothing is recorded. Without --config there are no scripts. Exits with 1 when a script fails.
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
        _print_trial(trial, body)
    if trial.failed:
        some = "a script" if len(trial.failed) == 1 else f"{len(trial.failed)} scripts"
        raise RunFailed(f"{some} failed: {printable_line(', '.join(trial.failed), 1000)}")


def _trial_json(trial: "TrialResult") -> dict[str, Any]:
    return {
        "agentId": trial.request.agent_id,
        "configured": trial.is_configured,
        "scripts": [_script_json(one) for one in trial.runs],
        "candidates": [one.members() for one in trial.candidates],
        "runsAs": trial.agent_id,
        "message": trial.message.text,
        "parts": [one._asdict() for one in trial.message.parts],
    }


def _script_json(one: "TrialRun") -> dict[str, Any]:
    texts = {"output": one.output, "content": one.content, "error": one.error}
    left_out = {"output", "injected", "error", "outputHmac"}
    plain = one.receipt.members().items()
    return {name: value for name, value in plain if name not in left_out} | texts


def _print_trial(trial: "TrialResult", body: dict[str, Any]) -> None:
    if not trial.is_configured:
        name = printable_line(trial.request.agent_id)
        print_note(f'there is no agent "{name}": it gets the scripts of the defaults')
    print_table(body["scripts"], _COLUMNS)
    for script in body["scripts"]:
        if script["error"]:
            print_note(f"{printable_line(script['id'])}: {printable_line(script['error'], 1000)}")
    print()
    print_fields(
        {
            "agent": trial.request.agent_id,
            "candidates": ", ".join(_format_candidate(one) for one in body["candidates"]) or "none",
            "runs as": trial.agent_id,
        }
    )
    for script in body["scripts"]:
        if script["content"] is not None:
            print(
                f"\n{printable_line(script['id'])} gives, {_PLACES[script['position']]} the task:\n"
            )
            print_block(script["content"])
    print("\nmessage:\n")
    print_block(trial.message.text)


def _format_candidate(one: dict[str, Any]) -> str:
    return f"{one['scriptId']}→{one['agentId'] or '(no agent id)'} ({one['verdict']})"


def _format_end(status: object, code: object) -> str | None:
    if status is not None:
        return f"HTTP {status}"
    return None if code is None else f"exit {code}"
