"""The description of commands is current and complete, and help reads well."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from application.operations import OPERATIONS
from application.queries.command import Command as CommandOfRow
from application.queries.operation import Operation
from generators.command_line.describe import description, help_of_functions
from generators.command_line.reference import commands
from infrastructure.inbound.command_line.client.command_groups import UsageError
from infrastructure.inbound.command_line.client.deferred import load
from infrastructure.inbound.command_line.client.described import described_operations
from infrastructure.inbound.command_line.client.plain_command import option_name
from infrastructure.inbound.command_line.client.recorded import HELP
from infrastructure.inbound.command_line.client.recorded import OPERATIONS as RECORDED
from infrastructure.inbound.command_line.commands.derived import DISPLAYS
from infrastructure.inbound.command_line.display.forms import FORMS
from tests.support.servers.command_line import Command, program
from tests.support.servers.recorded_api import RecordedApi, Reply, problem


def test_description_is_current() -> None:
    assert RECORDED.read_text("utf-8") == description(), "write it anew: make docs"


def test_help_of_functions_is_current() -> None:
    assert HELP.read_text("utf-8") == help_of_functions(), "write it anew: make docs"


@pytest.mark.parametrize("row", OPERATIONS, ids=lambda row: row.name)
def test_operation_has_command_or_reason(row: Operation) -> None:
    if isinstance(row.command, CommandOfRow):
        assert row.command.words is None or row.command.words in commands()
    else:
        assert row.command, "give the row a command, or the reason why it has none"


def forms_in(value: object) -> Iterator[str]:
    """Yield the form of each column anywhere in the recorded description."""
    if isinstance(value, list):
        for item in value:
            yield from forms_in(item)
    elif isinstance(value, dict):
        yield from (value[key] for key in ("form", "narrow") if isinstance(value.get(key), str))
        for item in value.values():
            yield from forms_in(item)


def test_every_form_of_a_column_is_known() -> None:
    used = set(forms_in(json.loads(RECORDED.read_text("utf-8"))))
    assert {"instant", "id"} <= used
    assert used <= set(FORMS)


def test_displays_are_of_derived_commands() -> None:
    derived = {
        described_operation.name
        for described_operation in described_operations().values()
        if not described_operation.by_hand
    }
    assert set(DISPLAYS) <= derived
    assert all(callable(load(place)) for place in DISPLAYS.values())


@pytest.mark.parametrize("words", commands())
def test_option_and_argument_has_help(words: str) -> None:
    parameters = [parameter for parameter in commands()[words].params if parameter.name != "help"]
    assert [parameter.name for parameter in parameters if not parameter.help] == []


@pytest.mark.process
def test_choices_leave_the_words_of_facts_alone() -> None:
    """Python keeps one `Literal` for equal words: of a file or of a fact, whichever is first."""
    program = """
from infrastructure.inbound.command_line.main import main
from domain.run.facts import SpawnOptions
made = SpawnOptions(mode="run")
print(SpawnOptions.from_json('{"mode": "run"}').to_json() == made.to_json())
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert ended.stdout == b"True\n"


CELLS = 80


def groups(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    inner = getattr(command, "commands", {})
    if inner:
        yield words
        for name, each in inner.items():
            yield from groups(each, (*words, name))


@pytest.mark.parametrize("words", list(groups(program())), ids=" ".join)
def test_list_of_commands_cuts_no_sentence(
    spawnlog: Command, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(CELLS))
    shown = spawnlog(*words, "--help").stdout.partition("Commands:")[2]
    assert shown
    assert "..." not in shown


@pytest.mark.parametrize("words", commands())
def test_help_is_in_words_of_people(words: str) -> None:
    command = commands()[words]
    shown = command.get_help(typer.Context(command, info_name=f"spawnlog {words}"))
    for sign in ("{", "[[", "list[", "env var", "the variable", "46116860184"):
        assert sign not in shown
    assert not re.search(r"--\S+ <int", shown)
    assert not re.search(r"^  [\w.]+ <", shown, re.MULTILINE)


RUN = "0f6f2f0e-0000-4000-8000-000000000001"

WITH_REQUESTS = {
    "spawn": ("spawn", "x"),
    "respawn": ("run", "respawn", RUN),
    "listRuns": ("run", "list"),
    "getDiff": ("diff", "1h", "0s"),
    "listEvents": ("event", "list"),
    "countEvents": ("event", "histogram"),
    "getSessionTree": ("session", "tree", "main"),
}

PLACES = {"query": "/query/", "path": "/path/", "body": "/"}


def fault(pointer: str, detail: str = "is wrong", text: str | None = None) -> Reply:
    """Return the answer to a request with one fault."""
    errors = [{"pointer": pointer, "detail": detail}]
    text = text or f"{pointer}: {detail}"
    return problem(422, code="invalid_request", detail=text, errors=errors)


@pytest.mark.parametrize("operation", WITH_REQUESTS)
def test_fault_of_parameter_names_its_option(
    spawnlog: Command, api: RecordedApi, operation: str
) -> None:
    row = described_operations()[operation]
    path = row.path.replace("{runId}", RUN).replace("{key}", "main")
    wrong = []
    for parameter in row.parameters:
        pointer = PLACES[parameter.place] + parameter.name.replace(".", "/")
        api.on(row.method, path, fault(pointer))
        result = spawnlog(*WITH_REQUESTS[operation])
        expected = f"error: {parameter.flag or parameter.metavar}: is wrong\n"
        if (result.exit_code, result.stderr) != (2, expected):
            wrong.append(f"{pointer}: {result.stderr}")
    assert not wrong


@pytest.mark.parametrize(
    ("arguments", "pointer", "name"),
    [
        (("spawn", "x"), "/requester/sessionKey", "--requester"),
        (("spawn", "x", "--attach-as", "x"), "/attachAs/mountPath", "--attach-as"),
        (("spawn", "x"), "/dependsOn/1", "--depends-on (number 2)"),
        (("spawn", "x", "--shared", "{}"), "/sharedContext/a~1b", "--shared a/b"),
        (("spawn", "x", "--shared", "{}"), "/sharedContext/", '--shared ""'),
        (("spawn", "--parallel", "--task", "a", "--task", ""), "/task/1", "--task (number 2)"),
        (("spawn", "x", "--depends-on", "a"), "/dependsOn/0", "--depends-on"),
        (("spawn", "x", "--shared", "{}"), "/sharedContext/" + "9" * 5000, "--shared 9"),
        (("spawn", "x"), "/" * 100_000, "/"),
        (("spawn", "x"), "/members/of/later/servers", "/members/of/later/servers"),
        (("run", "respawn", RUN, "--label", "x"), "/changes/label", "--label"),
        (("run", "respawn", RUN, "--set", "label=1"), "/changes/label", "--set label"),
        (("run", "respawn", RUN, "--set", "x=1"), "/changes/x", "--set x"),
        (("run", "respawn", RUN), "/changes/requester/sessionKey", "--requester"),
    ],
)
def test_fault_is_named_as_caller_gave_it(
    spawnlog: Command, api: RecordedApi, arguments: tuple[str, ...], pointer: str, name: str
) -> None:
    api.on("POST", "/v1/spawns", fault(pointer))
    api.on("POST", f"/v1/runs/{RUN}/respawn", fault(pointer))
    stderr = spawnlog(*arguments).stderr
    if len(pointer) < 1000:
        assert stderr == f"error: {name}: is wrong\n"
    else:
        assert stderr.startswith(f"error: {name}")
        assert len(stderr) < 3000


def test_fault_of_request_in_file_names_the_file(spawnlog: Command, api: RecordedApi) -> None:
    api.on("POST", "/v1/spawns", fault("/label"))
    result = spawnlog("spawn", "--file", "-", given='{"task": "x", "label": 1}')
    assert result.stderr == "error: --file label: is wrong\n"


def test_fault_that_is_whole_text_is_shown_once(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", "/v1/events", fault("/query/types", "there is no event type X"))
    expected = "error: --type: there is no event type X\n"
    assert spawnlog("event", "list", "--type", "X").stderr == expected
    text = "there is no event type X"
    api.on("GET", "/v1/events", fault("/query/types", text, text))
    assert spawnlog("event", "list", "--type", "X").stderr == expected


@pytest.mark.parametrize("words", commands())
def test_single_option_given_twice_is_refused(words: str) -> None:
    command = commands()[words]
    for parameter in command.params:
        if parameter.param_type_name == "option" and not (parameter.multiple or parameter.is_flag):
            twice = [parameter.opts[0], "1", option_name(parameter), "1"]
            with pytest.raises(
                UsageError, match=f"{option_name(parameter)} is given twice: give it"
            ):
                command.make_context(words, twice)


WITH_REQUESTER = [
    words
    for words, command in commands().items()
    if any("--requester" in parameter.opts for parameter in command.params)
]


@pytest.mark.parametrize("words", WITH_REQUESTER)
@pytest.mark.parametrize("own", ["main", "agent:main:subagent:x"])
def test_requester_me_is_own_session(words: str, own: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPAWNLOG_SESSION_KEY", own)
    command = commands()[words]
    required = [parameter for parameter in command.params if parameter.required]
    arguments = [f"{item.opts[0]}=x" if item.opts[0][0] == "-" else "x" for item in required]
    given = command.make_context(words, [*arguments, "--requester", "me"]).params
    assert own in (given.get("requester"), given.get("filter_requester"))


@pytest.mark.parametrize(
    ("status", "text", "message"),
    [
        (422, "this Idempotency-Key was used", "this --idempotency-key was used"),
        (401, "send a token as Authorization: Bearer …", "the server needs a token; give a token"),
        (422, "Use agents_list to see allowed ids.", "Use `spawnlog agent list` to see"),
    ],
)
def test_text_of_problem_is_in_words_of_commands(
    spawnlog: Command, api: RecordedApi, status: int, text: str, message: str
) -> None:
    api.on("POST", "/v1/spawns", problem(status, detail=text))
    assert message in spawnlog("spawn", "x", "--idempotency-key", "k").stderr


def test_what_was_not_there_yet_is_missed_as_of_then(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", f"/v1/runs/{RUN}", problem(404, code="not_found", detail="run not found"))
    assert spawnlog("run", "get", RUN).stderr == "error: run not found\n"
    then = spawnlog("run", "get", RUN, "--at", "pos:1")
    assert (then.exit_code, then.stderr) == (4, "error: run not found as of pos:1\n")
    api.on("GET", "/v1/runs", Reply({"items": [], "nextCursor": None}))
    assert "as of" not in spawnlog("run", "get", "zzz", "--at", "pos:1").stderr
