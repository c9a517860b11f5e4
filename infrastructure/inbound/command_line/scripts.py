"""`spawnlog script test`: what an agent's context scripts would do to a spawn."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from infrastructure.inbound.command_line.asking import given_text
from infrastructure.inbound.command_line.failures import RunFailed
from infrastructure.inbound.command_line.options import (
    As,
    ConfigFile,
    HomeDir,
    Output,
    Requester,
)
from infrastructure.inbound.command_line.plain_text import one_line
from infrastructure.inbound.command_line.rendering import (
    note,
    print_block,
    print_fields,
    print_object,
    print_table,
)
from infrastructure.inbound.command_line.spawning import Cleanup
from infrastructure.inbound.command_line.tables import Column, field

if TYPE_CHECKING:
    from application.script_trial import Trial, TrialRun

_COLUMNS = (
    Column("SCRIPT", field("id"), elastic=True),
    Column("OUTCOME", field("outcome"), coloured=True),
    Column("STANDS", field("position")),
    Column("ENDED", lambda row: _ended(row.get("statusCode"), row.get("exitCode"))),
    Column("MS", field("durationMs"), right=True),
    Column("BYTES", field("outputBytes"), right=True),
    Column("PROPOSES", field("candidate"), elastic=True),
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
    requester: Requester = "main",
    cleanup: Annotated[Cleanup | None, typer.Option(help="As a spawn would say it.")] = None,
    config: ConfigFile = None,
    data_dir: HomeDir = None,
    output: As = Output.TABLE,
) -> None:
    """Run an agent's context scripts without a spawn: what each gives, what would stand in front of
    the task and behind it, and which agent would run.

    The scripts run for real, on this machine, with SPAWNLOG_SCRIPT_TEST=1; no server is asked, and
    nothing is recorded. Exits with 1 when a script fails.
    """
    from infrastructure.composition import try_scripts
    from infrastructure.serve_options import ServeOptions
    from infrastructure.spawn_tried import SpawnTried

    tried = SpawnTried(
        agent=agent,
        task=given_text(task, "task"),
        requester=requester,
        label=label,
        cleanup=None if cleanup is None else cleanup.value,
    )
    trial = try_scripts(ServeOptions(config=config, data_dir=data_dir), tried)
    told = _told(trial)
    if not print_object(told, output):
        _show(trial, told)
    if trial.failed:
        some = "a script" if len(trial.failed) == 1 else f"{len(trial.failed)} scripts"
        raise RunFailed(f"{some} failed: {one_line(', '.join(trial.failed), 1000)}")


def _told(trial: "Trial") -> dict[str, Any]:
    return {
        "agentId": trial.asked.agent_id,
        "configured": trial.is_configured,
        "scripts": [_script(one) for one in trial.runs],
        "candidates": [one.model_dump(mode="json", by_alias=True) for one in trial.candidates],
        "runsAs": trial.agent_id,
        "message": trial.message.text,
        "parts": [one._asdict() for one in trial.message.parts],
    }


def _script(one: "TrialRun") -> dict[str, Any]:
    left_out = {"output", "injected", "error", "output_hmac"}
    plain = one.receipt.model_dump(mode="json", by_alias=True, exclude=left_out)
    return {**plain, "output": one.output, "content": one.content, "error": one.error}


def _show(trial: "Trial", told: dict[str, Any]) -> None:
    if not trial.is_configured:
        name = one_line(trial.asked.agent_id)
        note(f'there is no agent "{name}": it gets the scripts of the defaults')
    print_table(told["scripts"], _COLUMNS)
    for script in told["scripts"]:
        if script["error"]:
            note(f"{one_line(script['id'])}: {one_line(script['error'], 1000)}")
    print()
    print_fields(
        {
            "agent": trial.asked.agent_id,
            "candidates": ", ".join(_candidate(one) for one in told["candidates"]) or "none",
            "runs as": trial.agent_id,
        }
    )
    for script in told["scripts"]:
        if script["content"] is not None:
            print(f"\n{one_line(script['id'])} gives, {_PLACES[script['position']]} the task:\n")
            print_block(script["content"])
    print("\nmessage:\n")
    print_block(trial.message.text)


def _candidate(one: dict[str, Any]) -> str:
    return f"{one['scriptId']}→{one['agentId'] or '(no agent id)'} ({one['verdict']})"


def _ended(status: object, code: object) -> str | None:
    if status is not None:
        return f"HTTP {status}"
    return None if code is None else f"exit {code}"
