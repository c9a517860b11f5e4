"""The `spawnlog` command."""

import sys
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from infrastructure.contract.errors import UserError
from infrastructure.inbound.command_line.client.command_groups import CommandGroup, RootGroup
from infrastructure.inbound.command_line.client.described import described_operations
from infrastructure.inbound.command_line.client.moments import CommandOfMoments
from infrastructure.inbound.command_line.client.option_groups import flat_command
from infrastructure.inbound.command_line.client.options import DataDir, OutputOption, Url
from infrastructure.inbound.command_line.client.plain_command import PlainCommand
from infrastructure.inbound.command_line.commands import (
    announcements,
    config,
    event_search,
    events,
    log,
    mcp,
    page,
    scripts,
    serve,
    spawn,
    status,
    what_if,
)
from infrastructure.inbound.command_line.commands.derived import Display, derived_command
from infrastructure.inbound.command_line.commands.run import (
    changes,
    respawn,
    run_records,
    send,
    step,
    stop,
    subagents,
    trees,
)
from infrastructure.inbound.command_line.display.comparison import print_comparison
from infrastructure.inbound.command_line.display.failures import CommandFailed
from infrastructure.inbound.command_line.display.histogram import print_histogram
from infrastructure.inbound.command_line.display.lanes import print_lanes
from infrastructure.inbound.command_line.display.output import Output
from infrastructure.inbound.command_line.display.plain_text import printable_block
from infrastructure.inbound.command_line.display.run import print_run_texts
from infrastructure.inbound.command_line.display.run_records import (
    print_explanation,
    print_prompt,
    print_run_events,
)
from infrastructure.inbound.command_line.display.session import (
    print_session_runs,
    print_shared_context,
)
from infrastructure.inbound.command_line.display.verifications import print_verifications
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
    """A Typer of plain commands, which takes commands with groups of options."""

    def command(self, *args: Any, **settings: Any) -> Callable[..., Any]:
        register = super().command(*args, **{"cls": PlainCommand, **settings})
        return lambda command: register(flat_command(command))


def _add(words: str) -> Callable[..., Any]:
    """Return what adds a function as the command of these words."""
    *outer, name = words.split()
    group = _groups[outer[0]] if outer else app
    return group.command(name)


GROUPS = {
    "run": "Runs: spawns and what became of them.",
    "subagents": "A session's sub-agents, in the words of /subagents.",
    "agent": "Agents that may be spawned.",
    "event": "The events of the log.",
    "announcement": "The inbox of a session: the results of its children.",
    "session": "Sessions that spawn or were spawned.",
    "lane": "Lanes: what runs and what waits.",
    "config": "The configuration.",
    "script": "Context scripts.",
    "log": "Verify, export, import and rebuild the log.",
}
DISPLAYS: Mapping[str, Display] = {
    "listLanes": print_lanes,
    "getRun": print_run_texts,
    "listRunEvents": print_run_events,
    "getRunPrompt": print_prompt,
    "explainRun": print_explanation,
    "compareRuns": print_comparison,
    "countEvents": print_histogram,
    "getSession": print_session_runs,
    "getSharedContext": print_shared_context,
    "getLogHead": print_verifications,
}
"""What prints the answers of derived commands that a person looks at, by operation."""


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
_groups = {
    name: _FlatCommands(cls=CommandGroup, help=about, no_args_is_help=True)
    for name, about in GROUPS.items()
}
app.command("serve")(serve.serve)
app.command("status")(status.show_status)
app.command("version")(status.show_version)
app.command("migrate")(serve.migrate)
app.command("mcp")(mcp.relay_mcp)
app.command("open")(page.open_page)
app.command("spawn")(spawn.spawn)
app.command("what-if")(what_if.what_if)
app.command("diff", cls=CommandOfMoments)(changes.diff)

for _name, _group in _groups.items():
    app.add_typer(_group, name=_name)
for _operation in described_operations().values():
    if _operation.words is not None and not _operation.by_hand:
        _add(_operation.words)(derived_command(_operation, DISPLAYS.get(_operation.name)))
_add("run log")(run_records.run_log)
_add("run history")(changes.show_history)
_add("run step")(step.step_run)
_add("run tree")(trees.run_tree)
_add("run stop")(stop.stop_run)
_add("run send")(send.send_message)
_add("run steer")(send.steer_run)
_add("run respawn")(respawn.respawn_run)
_add("subagents list")(subagents.list_subagents)
_add("subagents log")(subagents.show_log)
_add("subagents info")(subagents.show_info)
_add("subagents send")(subagents.send)
_add("subagents steer")(subagents.steer)
_add("subagents stop")(subagents.stop)
_add("event list")(events.list_events)
_add("event find")(event_search.find_events)
_add("announcement list")(announcements.list_announcements)
_add("session tree")(trees.session_tree)
_add("session stop")(stop.stop_session)
_add("config check")(config.check_configuration)
_add("config show")(config.show_configuration)
_add("config diff")(config.compare_revisions)
_add("script test")(scripts.run_scripts)
_add("log rebuild")(log.rebuild_log)
_add("log verify")(log.verify_log)
_add("log export")(log.export_events)
_add("log import")(log.import_events)

if __name__ == "__main__":
    main()
