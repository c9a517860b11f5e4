"""The `spawnlog` command."""

import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from infrastructure.contract.errors import UserError
from infrastructure.inbound.command_line.client.command_groups import CommandGroup, RootGroup
from infrastructure.inbound.command_line.client.moments import CommandOfMoments
from infrastructure.inbound.command_line.client.option_groups import flat_command
from infrastructure.inbound.command_line.client.options import DataDir, OutputOption, Url
from infrastructure.inbound.command_line.commands import (
    agents,
    announcements,
    config,
    event_search,
    events,
    histogram,
    log,
    mcp,
    page,
    scripts,
    serve,
    sessions,
    spawn,
    status,
    what_if,
)
from infrastructure.inbound.command_line.commands.run import (
    changes,
    respawn,
    run_records,
    runs,
    send,
    step,
    stop,
    subagents,
    trees,
)
from infrastructure.inbound.command_line.display.failures import CommandFailed
from infrastructure.inbound.command_line.display.output import Output
from infrastructure.inbound.command_line.display.plain_text import printable_block
from spawnlog.core.errors import SpawnlogError

EPILOG = (
    "Exit status: 0 fine, 1 a difference or a run that failed, 2 usage or error, 3 refused, "
    "4 not found, 5 unreachable."
)


class _Commands(RootGroup):
    """Turns a failure into its text on stderr and its exit status."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except CommandFailed as failure:
            _print_error(f"{failure.word}: {failure.message}")
            raise typer.Exit(failure.exit_code) from None
        except (UserError, SpawnlogError) as failure:
            _print_error(f"error: {failure}")
            raise typer.Exit(CommandFailed.exit_code) from None


def main() -> None:
    """Run the command line of this process; ends the process."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a letter gets its escape instead of a traceback.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    app(prog_name="spawnlog")


def _print_error(text: str) -> None:
    sys.stdout.flush()
    print(printable_block(text), file=sys.stderr)


def _print_version(value: bool) -> None:
    if value:
        status.show_version()
        raise typer.Exit()


def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
    url: Url = None,
    data_dir: DataDir = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Control plane and black-box recorder for AI sub-agent runs."""


class _FlatCommands(typer.Typer):
    """A Typer that takes commands with groups of options."""

    def command(self, *args: Any, **settings: Any) -> Callable[..., Any]:
        register = super().command(*args, **settings)
        return lambda command: register(flat_command(command))


def _group(name: str, about: str) -> typer.Typer:
    group = _FlatCommands(cls=CommandGroup, help=about, no_args_is_help=True)
    app.add_typer(group, name=name)
    return group


app = _FlatCommands(
    cls=_Commands,
    no_args_is_help=True,
    epilog=EPILOG,
    pretty_exceptions_enable=False,
    # Plain help: it is quick, and what stands in brackets is shown and not taken for a colour.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.callback()(_root)
app.command("serve")(serve.serve)
app.command("status")(status.show_status)
app.command("version")(status.show_version)
app.command("migrate")(serve.migrate)
app.command("mcp")(mcp.relay_mcp)
app.command("open")(page.open_page)
app.command("spawn")(spawn.spawn)
app.command("what-if")(what_if.what_if)
app.command("diff", cls=CommandOfMoments)(changes.diff)

_run = _group("run", "Runs: spawns and what became of them.")
_run.command("list")(runs.list_runs)
_run.command("get")(runs.get_run)
_run.command("log")(run_records.run_log)
_run.command("events")(run_records.run_events)
_run.command("prompt")(run_records.run_prompt)
_run.command("explain")(run_records.explain_run)
_run.command("history")(changes.show_history)
_run.command("compare")(changes.compare_runs)
_run.command("step")(step.step_run)
_run.command("tree")(trees.run_tree)
_run.command("stop")(stop.stop_run)
_run.command("send")(send.send_message)
_run.command("steer")(send.steer_run)
_run.command("respawn")(respawn.respawn_run)
_subagents = _group("subagents", "A session's sub-agents, in the words of /subagents.")
_subagents.command("list")(subagents.list_subagents)
_subagents.command("log")(subagents.show_log)
_subagents.command("info")(subagents.show_info)
_subagents.command("send")(subagents.send)
_subagents.command("steer")(subagents.steer)
_subagents.command("stop")(subagents.stop)
_group("agent", "Agents that may be spawned.").command("list")(agents.list_agents)
_event = _group("event", "The events of the log.")
_event.command("list")(events.list_events)
_event.command("histogram")(histogram.event_histogram)
_event.command("find")(event_search.find_events)
_announcement = _group("announcement", "The inbox of a session: the results of its children.")
_announcement.command("list")(announcements.list_announcements)
_announcement.command("ack")(announcements.acknowledge)
_announcement.command("redrive")(announcements.redrive)
_session = _group("session", "Sessions that spawn or were spawned.")
_session.command("get")(sessions.get_session)
_session.command("tree")(trees.session_tree)
_session.command("context")(sessions.get_context)
_session.command("stop")(stop.stop_session)
_group("lane", "Lanes: what runs and what waits.").command("list")(agents.list_lanes)
_config = _group("config", "The configuration.")
_config.command("check")(config.check_configuration)
_config.command("show")(config.show_configuration)
_config.command("history")(config.list_revisions)
_config.command("diff")(config.compare_revisions)
_group("script", "Context scripts.").command("test")(scripts.run_scripts)
_log = _group("log", "Verify, export, import and rebuild the log.")
_log.command("head")(log.show_head)
_log.command("rebuild")(log.rebuild_log)
_log.command("verify")(log.verify_log)
_log.command("export")(log.export_events)
_log.command("import")(log.import_events)

if __name__ == "__main__":
    main()
