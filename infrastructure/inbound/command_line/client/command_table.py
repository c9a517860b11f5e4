"""Table of all commands, readable before any of them is imported."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from infrastructure.inbound.command_line.client.command_groups import CommandGroup
from infrastructure.inbound.command_line.client.deferred import DeferredCommand, load
from infrastructure.inbound.command_line.client.recorded import HELP, OPERATIONS, recorded

GROUPS = {
    "run": "List, inspect, stop, message and respawn runs.",
    "subagents": "Manage a session's sub-agents, as /subagents does.",
    "agent": "List the agents that a session may spawn.",
    "event": "Search and follow the events of the log.",
    "announcement": "Read and acknowledge results of finished runs.",
    "session": "Inspect and stop sessions, and set their preambles.",
    "lane": "Inspect lanes: running and queued runs.",
    "config": "Check, show and compare configurations.",
    "script": "Test context scripts.",
    "log": "Verify, export, import and rebuild the log.",
}

FUNCTIONS: Mapping[str, str] = {
    "serve": "commands.serve:serve",
    "status": "commands.status:show_status",
    "version": "commands.status:show_version",
    "migrate": "commands.serve:migrate",
    "mcp": "commands.mcp:relay_mcp",
    "open": "commands.page:open_page",
    "spawn": "commands.spawn:spawn",
    "what-if": "commands.what_if:what_if",
    "diff": "commands.run.changes:diff",
    "run log": "commands.run.run_records:run_log",
    "run history": "commands.run.changes:show_history",
    "run step": "commands.run.step:step_run",
    "run tree": "commands.run.trees:run_tree",
    "run stop": "commands.run.stop:stop_run",
    "run send": "commands.run.send:send_message",
    "run steer": "commands.run.send:steer_run",
    "run respawn": "commands.run.respawn:respawn_run",
    "subagents list": "commands.run.subagents:list_subagents",
    "subagents log": "commands.run.subagents:show_log",
    "subagents info": "commands.run.subagents:show_info",
    "subagents send": "commands.run.subagents:send",
    "subagents steer": "commands.run.subagents:steer",
    "subagents stop": "commands.run.subagents:stop",
    "event list": "commands.events:list_events",
    "event find": "commands.event_search:find_events",
    "announcement list": "commands.announcements:list_announcements",
    "session tree": "commands.run.trees:session_tree",
    "session stop": "commands.run.stop:stop_session",
    "config check": "commands.config:check_configuration",
    "config show": "commands.config:show_configuration",
    "config diff": "commands.config:compare_revisions",
    "script test": "commands.scripts:run_scripts",
    "log rebuild": "commands.log:rebuild_log",
    "log verify": "commands.log:verify_log",
    "log export": "commands.log:export_events",
    "log import": "commands.log:import_events",
}
"""The place of each command's function. The other commands derive from operations."""


def root_commands() -> Mapping[str, DeferredCommand]:
    """Return the commands and groups of the first level."""
    groups = {
        name: DeferredCommand(about, partial(_group, name, about)) for name, about in GROUPS.items()
    }
    return {**_functions(""), **_derived(""), **groups}


def _group(name: str, about: str) -> CommandGroup:
    return CommandGroup(
        name=name,
        help=about,
        no_args_is_help=True,
        rich_markup_mode=None,
        deferred={**_derived(name), **_functions(name)},
    )


def _functions(group: str) -> Mapping[str, DeferredCommand]:
    about = recorded(HELP)
    return {
        name: DeferredCommand(about.get(words, ""), partial(_function_command, name, place))
        for words, place in FUNCTIONS.items()
        for outer, name in (_split(words),)
        if outer == group
    }


def _derived(group: str) -> Mapping[str, DeferredCommand]:
    return {
        name: DeferredCommand(row["help"], partial(_derived_command, name, operation))
        for operation, row in recorded(OPERATIONS).items()
        if "words" in row and not row.get("byHand")
        for outer, name in (_split(row["words"]),)
        if outer == group
    }


def _split(words: str) -> tuple[str, str]:
    outer, _, name = words.rpartition(" ")
    return outer, name


def _function_command(name: str, place: str) -> Any:
    return load("commands.make_command:function_command")(name, place)


def _derived_command(name: str, operation: str) -> Any:
    return load("commands.make_command:derived_command")(name, operation)
