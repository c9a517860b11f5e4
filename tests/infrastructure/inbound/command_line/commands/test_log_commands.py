"""`spawnlog serve`, `migrate`, `config check`, `log rebuild`, `verify` and `head`."""

import json
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from application.ports.verifications import Difference
from infrastructure.contract.errors import UserError
from infrastructure.contract.operations import (
    OnProgress,
    OnVerifyProgress,
    RebuildProgress,
    ServeOptions,
    VerifiedCounts,
    VerifyOptions,
    VerifyReport,
)
from infrastructure.inbound.command_line.display import progress
from tests.support.servers.command_line import Command
from tests.support.servers.recorded_api import RecordedApi, Reply

HASH = "0f" * 32
REBUILT = SimpleNamespace(differing=0, events=30, runs=4, sessions=2, seconds=0.25, identical=True)
CONFIGURED = SimpleNamespace(
    problems=(),
    agents=("main", "counter"),
    secret_pointers=("/models/providers/x/apiKey",),
    warnings=(),
    is_usable=True,
)
RIGHT = VerifyReport(
    head=f"30:{HASH}", began=10, events=20, counts=VerifiedCounts(4, 2, 7, 1, 3), seconds=0.5
)
WRONG = replace(RIGHT, events=5, difference=Difference(16, "missing", "it is gone"))


@dataclass
class Operations:
    """Operations of the server that return what a test sets, and record their arguments."""

    options: list[ServeOptions] = field(default_factory=list)
    arguments: list[Any] = field(default_factory=list)
    exit_code: int = 0
    failure: BaseException | None = None
    rebuilt: Any = field(default_factory=lambda: REBUILT)
    configured: Any = field(default_factory=lambda: CONFIGURED)
    verified: VerifyReport = RIGHT

    def serve(self, options: ServeOptions) -> int:
        self._record(options)
        return self.exit_code

    def migrate(self, options: ServeOptions) -> str:
        self._record(options)
        return "the schema is at revision 1"

    def rebuild(self, options: ServeOptions, on_progress: OnProgress) -> Any:
        self._record(options)
        on_progress(RebuildProgress("events", 15, 30))
        return self.rebuilt

    def check_configuration(self, path: Path) -> Any:
        self.arguments.append(path)
        return self.configured

    def verify(
        self, options: ServeOptions, verify_options: VerifyOptions, on_progress: OnVerifyProgress
    ) -> VerifyReport:
        self.arguments.append(verify_options)
        for position in (10, 20, 30):
            on_progress(10, position, 30)
        self._record(options)
        return self.verified

    def _record(self, options: ServeOptions) -> None:
        self.options.append(options)
        if self.failure is not None:
            raise self.failure


@pytest.fixture
def operations(monkeypatch: pytest.MonkeyPatch) -> Operations:
    stand_in = Operations()
    module = ModuleType("infrastructure.server.operations")
    for name in ("serve", "migrate", "rebuild", "check_configuration", "verify"):
        setattr(module, name, getattr(stand_in, name))
    monkeypatch.setitem(sys.modules, "infrastructure.server.operations", module)
    return stand_in


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["serve"], ServeOptions()),
        (
            [
                *["serve", "--config", "a.json5", "--database-url", "postgresql://u:secret@h/d"],
                *["--data-dir", "d", "--host", "::1", "--port", "0", "--no-auth"],
            ],
            ServeOptions(
                config=Path("a.json5"),
                database_url="postgresql://u:secret@h/d",
                data_dir=Path("d"),
                host="::1",
                port=0,
                no_auth=True,
            ),
        ),
        (
            ["migrate", "--database-url", "postgresql://h/d"],
            ServeOptions(database_url="postgresql://h/d"),
        ),
        (["log", "rebuild", "--data-dir", "d"], ServeOptions(data_dir=Path("d"))),
        (["log", "verify", "--data-dir", "d"], ServeOptions(data_dir=Path("d"))),
        (
            ["log", "verify", "--database-url", "postgresql://h/d", "--config", "c.json5"],
            ServeOptions(database_url="postgresql://h/d", config=Path("c.json5")),
        ),
    ],
)
def test_only_given_flags_are_passed_on(
    words: list[str], options: ServeOptions, spawnlog: Command, operations: Operations
) -> None:
    assert spawnlog(*words).exit_code == 0
    assert operations.options == [options]
    assert "secret" not in repr(options)


def test_serve_exits_with_status_of_server(spawnlog: Command, operations: Operations) -> None:
    operations.exit_code = 7
    assert spawnlog("serve").exit_code == 7
    assert spawnlog("migrate").stdout == "the schema is at revision 1\n"


@pytest.mark.parametrize(
    ("words", "failure", "message"),
    [
        ("serve", UserError("port 8700 is taken"), "port 8700 is taken"),
        ("log verify", UserError("the database went away"), "the database went away"),
        (
            "log verify",
            KeyboardInterrupt(),
            "interrupted; continue with --resume",
        ),
    ],
)
def test_failure_is_one_line(
    words: str,
    failure: BaseException,
    message: str,
    spawnlog: Command,
    operations: Operations,
) -> None:
    operations.failure = failure
    result = spawnlog(*words.split())
    assert (result.exit_code, result.stderr) == (2, f"error: {message}\n")


def test_identical_rebuild_exits_0(spawnlog: Command, operations: Operations) -> None:
    result = spawnlog("log", "rebuild")
    assert (result.exit_code, result.stderr) == (0, "folding events 15 of 30\n")
    assert "30 events gave 4 runs and 2 sessions in 0.25 s" in result.stdout


def test_differing_rebuild_exits_1(spawnlog: Command, operations: Operations) -> None:
    operations.rebuilt = SimpleNamespace(**{**vars(REBUILT), "differing": 3, "identical": False})
    result = spawnlog("log", "rebuild", "-o", "json")
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert (report["identical"], report["differing"]) == (False, 3)
    assert "3 rows differed from the events; they are corrected" in result.stderr


# Checks of a configuration.


def test_check_shows_each_problem_and_exits_2(spawnlog: Command, operations: Operations) -> None:
    problems = ("line 3: x", "line 9: \x1b[1m")
    operations.configured = SimpleNamespace(**{**vars(CONFIGURED), "problems": problems})
    result = spawnlog("config", "check", "a.json5")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "line 3: x" in result.stderr
    assert "\\x1b[1m" in result.stderr


# Verification.


def test_right_log_prints_head_last(spawnlog: Command, operations: Operations) -> None:
    result = spawnlog("log", "verify")
    assert (result.exit_code, result.stderr) == (0, "")
    for line in (
        "20 events after position 10 are valid, verified in 0.50 s (40 a second)",
        "7 texts and 1 transcripts; 3 erased with their keys",
    ):
        assert line in result.stdout
    assert result.stdout.splitlines()[-1] == f"30:{HASH}"
    assert operations.arguments == [VerifyOptions()]
    operations.verified = replace(RIGHT, is_recorded=False)
    unrecorded = spawnlog("log", "verify")
    assert unrecorded.exit_code == 0
    assert "the database could not store it" in unrecorded.stderr


def test_verification_begins_where_flags_say(spawnlog: Command, operations: Operations) -> None:
    flags = ["--head", f"30:{HASH.upper()}", "--resume", "--state", "s.json"]
    spawnlog("log", "verify", *flags)
    head = (30, bytes.fromhex(HASH))
    assert operations.arguments == [
        VerifyOptions(head=head, resume=True, state_file=Path("s.json"))
    ]


def test_difference_exits_1_without_head(spawnlog: Command, operations: Operations) -> None:
    operations.verified = WRONG
    result = spawnlog("log", "verify")
    assert (result.exit_code, result.stderr) == (1, "error: position 16: it is gone\n")
    assert HASH not in result.stdout, "the head of a log that is wrong is not to be noted"


@pytest.mark.parametrize("flags", [["--json"], ["-o", "json"]])
def test_verification_as_json(spawnlog: Command, operations: Operations, flags: list[str]) -> None:
    facts = json.loads(spawnlog("log", "verify", *flags).stdout)
    assert (facts["ok"], facts["difference"]) == (True, None)
    assert (facts["head"], facts["events"], facts["erased"]) == (f"30:{HASH}", 20, 3)
    operations.verified = WRONG
    result = spawnlog("log", "verify", *flags)
    facts = json.loads(result.stdout)
    assert (result.exit_code, facts["ok"]) == (1, False)
    difference = {"position": 16, "kind": "missing", "text": "position 16: it is gone"}
    assert facts["difference"] == difference


@pytest.mark.parametrize(
    "head", ["", "30", "30:", f":{HASH}", f"0:{HASH}", f"-1:{HASH}", "30:0f", f"3x:{HASH}", "30:zz"]
)
def test_malformed_head_is_refused(spawnlog: Command, operations: Operations, head: str) -> None:
    result = spawnlog("log", "verify", f"--head={head}")
    assert (result.exit_code, operations.arguments) == (2, [])
    assert "--head takes a position and a hash of 64 hexadecimal digits" in result.stderr


def test_long_verification_shows_progress(
    spawnlog: Command, operations: Operations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    lines = spawnlog("log", "verify").stderr.splitlines()
    assert lines[:2] == ["verifying events 10 of 30", "verifying events 20 of 30"]


@pytest.mark.parametrize("content", ["", "no export\n", '{"id": 1}\n'])
def test_file_that_is_no_export_is_an_error(
    spawnlog: Command, tmp_path: Path, content: str
) -> None:
    file = tmp_path / "notes.txt"
    file.write_text(content)
    result = spawnlog("log", "verify", str(file))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "notes.txt is not from `spawnlog log export`: line 1: " in result.stderr


# The head.


HEAD: dict[str, Any] = {
    "logId": "11111111-0000-4000-8000-000000000001",
    "position": 30,
    "recordedAt": "2026-03-01T09:30:00.000Z",
    "chainHash": HASH,
    "verifications": [],
}
VERIFICATION: dict[str, Any] = {
    **{"state": "right", "startedBy": "admin", "origin": "server", "process": "one:7"},
    **{"startedAt": "2026-03-01T09:30:00Z", "endedAt": "2026-03-01T09:30:02.500Z"},
    **{"checked": 30, "last": 30, "difference": None, "failure": None, "stopRequestedBy": None},
}


def test_head_is_shown_as_verify_takes_it(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", "/v1/log", Reply(HEAD))
    result = spawnlog("log", "head", "--at", "pos:30")
    assert api.asked[0].query == {"at": "pos:30"}
    assert f"30:{HASH}" in result.stdout
    assert "spawnlog log verify" in result.stderr
    assert json.loads(spawnlog("log", "head", "-o", "json").stdout) == HEAD


@pytest.mark.parametrize(
    ("members", "row"),
    [
        ({}, "+2.500s admin server one:7 right 30 of 30"),
        (
            {"state": "running", "endedAt": None, "checked": 0, "last": None},
            "admin server one:7 running 0 of ?",
        ),
        (
            {
                "state": "different",
                "checked": 20,
                "difference": {"position": 21, "text": "changed"},
            },
            "+2.500s admin server one:7 different 20 of 30 position 21: changed",
        ),
        (
            {"state": "stopped", "stopRequestedBy": "ops"},
            "+2.500s admin server one:7 stopped 30 of 30 stopped by ops",
        ),
        (
            {"state": "failed", "failure": "the disk is \x1b[2J full"},
            r"+2.500s admin server one:7 failed 30 of 30 the disk is \x1b[2J full",
        ),
    ],
)
def test_head_shows_verifications(
    members: dict[str, Any], row: str, spawnlog: Command, api: RecordedApi
) -> None:
    api.on("GET", "/v1/log", Reply({**HEAD, "verifications": [{**VERIFICATION, **members}]}))
    last = spawnlog("log", "head").stdout.splitlines()[-1]
    assert " ".join(last.split()) == f"2026-03-01 09:30:00.000 {row}"
