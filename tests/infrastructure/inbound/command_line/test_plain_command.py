"""Errors of commands are in the words of their callers."""

import pytest

from infrastructure.inbound.command_line.client.command_groups import UsageError
from infrastructure.inbound.command_line.client.described import described_operations
from infrastructure.inbound.command_line.client.plain_command import option_name
from tests.support.command_line.reference import commands
from tests.support.servers.command_line import Command
from tests.support.servers.recorded_api import RecordedApi, Reply, problem

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
    for one in row.parameters:
        pointer = PLACES[one.place] + one.name.replace(".", "/")
        api.on(row.method, path, fault(pointer))
        result = spawnlog(*WITH_REQUESTS[operation])
        expected = f"error: {one.flag or one.metavar}: is wrong\n"
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
    told = spawnlog(*arguments).stderr
    if len(pointer) < 1000:
        assert told == f"error: {name}: is wrong\n"
    else:
        assert told.startswith(f"error: {name}")
        assert len(told) < 3000


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
    for one in command.params:
        if one.param_type_name == "option" and not (one.multiple or one.is_flag):
            twice = [one.opts[0], "1", option_name(one), "1"]
            with pytest.raises(UsageError, match=f"{option_name(one)} is given twice: give it"):
                command.make_context(words, twice)


def test_option_before_and_behind_command_is_refused(spawnlog: Command) -> None:
    result = spawnlog("-o", "json", "run", "list", "--output", "yaml")
    assert "--output is given twice: give it once" in result.stderr


def test_option_that_may_be_repeated_is_taken(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", "/v1/runs", Reply({"items": [], "nextCursor": None}))
    assert spawnlog("run", "list", "--label", "a", "--label", "b").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--limit", "abc"), "'--limit': must be a whole number"),
        (("--depth", "99"), "'--depth': must be at most 64"),
        (("-o", "xml"), "'--output' / '-o': 'xml' is not one of"),
    ],
)
def test_value_of_wrong_type_is_refused_plainly(
    spawnlog: Command, arguments: tuple[str, ...], text: str
) -> None:
    result = spawnlog("run", "list", *arguments)
    assert f"Invalid value for {text}" in result.stderr


WITH_REQUESTER = [
    words
    for words, command in commands().items()
    if any("--requester" in one.opts for one in command.params)
]


@pytest.mark.parametrize("words", WITH_REQUESTER)
@pytest.mark.parametrize("own", ["main", "agent:main:subagent:x"])
def test_requester_me_is_own_session(words: str, own: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPAWNLOG_SESSION_KEY", own)
    command = commands()[words]
    required = [one for one in command.params if one.required]
    arguments = [f"{one.opts[0]}=x" if one.opts[0][0] == "-" else "x" for one in required]
    given = command.make_context(words, [*arguments, "--requester", "me"]).params
    assert own in (given.get("requester"), given.get("filter_requester"))


@pytest.mark.parametrize(
    ("status", "text", "told"),
    [
        (422, "this Idempotency-Key was used", "this --idempotency-key was used"),
        (401, "send a token as Authorization: Bearer …", "the server needs a token; give a token"),
        (422, "Use agents_list to see allowed ids.", "Use `spawnlog agent list` to see"),
    ],
)
def test_text_of_problem_is_in_words_of_commands(
    spawnlog: Command, api: RecordedApi, status: int, text: str, told: str
) -> None:
    api.on("POST", "/v1/spawns", problem(status, detail=text))
    assert told in spawnlog("spawn", "x", "--idempotency-key", "k").stderr


def test_what_was_not_there_yet_is_missed_as_of_then(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", f"/v1/runs/{RUN}", problem(404, code="not_found", detail="there is no such run"))
    assert spawnlog("run", "get", RUN).stderr == "error: there is no such run\n"
    then = spawnlog("run", "get", RUN, "--at", "pos:1")
    assert (then.exit_code, then.stderr) == (4, "error: there is no such run as of pos:1\n")
    api.on("GET", "/v1/runs", Reply({"items": [], "nextCursor": None}))
    assert "as of" not in spawnlog("run", "get", "zzz", "--at", "pos:1").stderr
