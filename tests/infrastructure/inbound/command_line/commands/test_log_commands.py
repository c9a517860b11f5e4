"""`spawnlog serve`, `migrate`, `config check`, `log rebuild`, `verify` and `head`."""

import json
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
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


@dataclass
class RebuildReport:
    differing: int
    events: int = 30
    runs: int = 4
    sessions: int = 2
    seconds: float = 0.25

    @property
    def identical(self) -> bool:
        return self.differing == 0


@dataclass
class ConfigurationReport:
    problems: tuple[str, ...] = ()
    agents: tuple[str, ...] = ("main", "counter")
    secret_pointers: tuple[str, ...] = ("/models/providers/x/apiKey",)
    warnings: tuple[str, ...] = ()
    is_usable: bool = True


@dataclass
class Composition:
    """What was called, and what it gives."""

    options: list[ServeOptions] = field(default_factory=list)
    checked: list[Path] = field(default_factory=list)
    exit_code: int = 0
    failure: UserError | None = None
    report: RebuildReport = field(default_factory=lambda: RebuildReport(differing=0))
    configuration: ConfigurationReport = field(default_factory=ConfigurationReport)

    def serve(self, options: ServeOptions) -> int:
        self._called(options)
        return self.exit_code

    def migrate(self, options: ServeOptions) -> str:
        self._called(options)
        return "the schema is at revision 1"

    def rebuild(self, options: ServeOptions, on_progress: OnProgress) -> RebuildReport:
        self._called(options)
        on_progress(RebuildProgress("events", 15, 30))
        return self.report

    def check_configuration(self, path: Path) -> ConfigurationReport:
        self.checked.append(path)
        return self.configuration

    def _called(self, options: ServeOptions) -> None:
        self.options.append(options)
        if self.failure is not None:
            raise self.failure


@pytest.fixture
def composition(monkeypatch: pytest.MonkeyPatch) -> Composition:
    stand_in = Composition()
    module = ModuleType("infrastructure.server.operations")
    for name in ("serve", "migrate", "rebuild", "check_configuration"):
        setattr(module, name, getattr(stand_in, name))
    monkeypatch.setitem(sys.modules, "infrastructure.server.operations", module)
    return stand_in


def test_flags_that_were_not_given_are_left_open(
    spawnlog: Command, composition: Composition
) -> None:
    assert spawnlog("serve").exit_code == 0
    assert composition.options == [ServeOptions()]


def test_each_flag_is_passed_on(spawnlog: Command, composition: Composition) -> None:
    flags = [
        *["--config", "a.json5", "--database-url", "postgresql://u:secret@h/d"],
        *["--data-dir", "d", "--host", "::1", "--port", "0", "--no-auth"],
    ]
    spawnlog("serve", *flags)
    given = ServeOptions(
        config=Path("a.json5"),
        database_url="postgresql://u:secret@h/d",
        data_dir=Path("d"),
        host="::1",
        port=0,
        no_auth=True,
    )
    assert composition.options == [given]
    assert "secret" not in repr(given)


def test_the_status_of_the_server_is_that_of_the_command(
    spawnlog: Command, composition: Composition
) -> None:
    composition.exit_code = 7
    assert spawnlog("serve").exit_code == 7


def test_a_port_that_is_none_is_refused(spawnlog: Command, composition: Composition) -> None:
    assert spawnlog("serve", "--port", "65536").exit_code == 2
    assert composition.options == []


def test_what_the_user_must_mend_is_told_in_one_line(
    spawnlog: Command, composition: Composition
) -> None:
    composition.failure = UserError("port 8700 is taken: choose another with --port")
    result = spawnlog("serve")
    assert result.exit_code == 2
    assert result.stderr == "error: port 8700 is taken: choose another with --port\n"


def test_migrate_tells_what_it_did(spawnlog: Command, composition: Composition) -> None:
    result = spawnlog("migrate", "--database-url", "postgresql://h/d")
    assert result.stdout == "the schema is at revision 1\n"
    assert composition.options == [ServeOptions(database_url="postgresql://h/d")]


def test_an_identical_rebuild_exits_with_0(spawnlog: Command, composition: Composition) -> None:
    result = spawnlog("log", "rebuild", "--data-dir", "d")
    assert result.exit_code == 0
    assert "30 events gave 4 runs and 2 sessions in 0.25 s" in result.stdout
    assert result.stderr == "folding events 15 of 30\n"
    assert composition.options == [ServeOptions(data_dir=Path("d"))]


def test_a_rebuild_that_found_a_difference_exits_with_1(
    spawnlog: Command, composition: Composition
) -> None:
    composition.report = RebuildReport(differing=3)
    result = spawnlog("log", "rebuild", "-o", "json")
    assert result.exit_code == 1
    told = json.loads(result.stdout)
    assert (told["identical"], told["differing"]) == (False, 3)
    assert "3 rows were not what the events say; now the tables are" in result.stderr


def test_a_right_configuration_tells_agents_and_secrets(
    spawnlog: Command, composition: Composition
) -> None:
    result = spawnlog("config", "check", "a.json5")
    assert result.exit_code == 0
    assert "agents: main, counter" in result.stdout
    assert "kept as a secret: /models/providers/x/apiKey" in result.stdout
    assert composition.checked == [Path("a.json5")]


def test_what_is_doubtful_in_a_configuration_is_told_beside_the_answer(
    spawnlog: Command, composition: Composition
) -> None:
    composition.configuration = ConfigurationReport(warnings=("line 2: \x1b[1m",))
    result = spawnlog("config", "check", "a.json5")
    assert result.exit_code == 0
    assert result.stderr == "warning: line 2: \\x1b[1m\n"
    told = json.loads(spawnlog("config", "check", "a.json5", "-o", "json").stdout)
    assert told["warnings"] == ["line 2: \x1b[1m"]


def test_a_wrong_configuration_exits_with_2_and_tells_each_problem(
    spawnlog: Command, composition: Composition
) -> None:
    composition.configuration = ConfigurationReport(problems=("line 3: x", "line 9: \x1b[1m"))
    result = spawnlog("config", "check", "a.json5")
    assert result.exit_code == 2
    assert "line 3: x" in result.stderr
    assert "\\x1b[1m" in result.stderr
    assert result.stdout == ""


HASH = "0f" * 32

RIGHT = VerifyReport(
    head=f"30:{HASH}",
    began=10,
    events=20,
    counts=VerifiedCounts(4, 2, 7, 1, 3),
    seconds=0.5,
)

WRONG = replace(RIGHT, events=5, difference=Difference(16, "missing", "it is gone"))


@dataclass
class Verifying:
    """What was called, and what it gives."""

    report: VerifyReport = RIGHT
    failure: BaseException | None = None
    options: list[ServeOptions] = field(default_factory=list)
    asked: list[VerifyOptions] = field(default_factory=list)

    def verify(
        self, options: ServeOptions, asked: VerifyOptions, on_progress: OnVerifyProgress
    ) -> VerifyReport:
        self.options.append(options)
        self.asked.append(asked)
        for position in (10, 20, 30):
            on_progress(10, position, 30)
        if self.failure is not None:
            raise self.failure
        return self.report


@pytest.fixture
def verifying(monkeypatch: pytest.MonkeyPatch) -> Verifying:
    stand_in = Verifying()
    module = ModuleType("infrastructure.server.operations")
    module.verify = stand_in.verify  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "infrastructure.server.operations", module)
    return stand_in


def test_a_right_log_exits_with_0_and_prints_its_head_last(
    spawnlog: Command, verifying: Verifying
) -> None:
    result = spawnlog("log", "verify", "--data-dir", "d")
    assert result.exit_code == 0
    assert "20 events behind position 10 were right, verified in 0.50 s (40 a second)" in (
        result.stdout
    )
    assert "7 texts and 1 transcripts; 3 erased with their keys" in result.stdout
    assert result.stdout.splitlines()[-1] == f"30:{HASH}"
    assert verifying.options == [ServeOptions(data_dir=Path("d"))]
    assert verifying.asked == [VerifyOptions()]


def test_each_flag_of_a_verification_is_passed_on(spawnlog: Command, verifying: Verifying) -> None:
    flags = ["--head", f"30:{HASH.upper()}", "--resume", "--state", "s.json"]
    spawnlog("log", "verify", *flags, "--database-url", "postgresql://h/d", "--config", "c.json5")
    head = (30, bytes.fromhex(HASH))
    assert verifying.asked == [VerifyOptions(head=head, resume=True, state_file=Path("s.json"))]
    given = ServeOptions(database_url="postgresql://h/d", config=Path("c.json5"))
    assert verifying.options == [given]


def test_a_difference_exits_with_1_and_is_named(spawnlog: Command, verifying: Verifying) -> None:
    verifying.report = WRONG
    result = spawnlog("log", "verify")
    assert result.exit_code == 1
    assert result.stderr == "error: position 16: it is gone\n"
    assert HASH not in result.stdout, "the head of a log that is wrong is not to be noted"


@pytest.mark.parametrize("flags", [["--json"], ["-o", "json"]])
def test_the_answer_is_json_when_asked(
    spawnlog: Command, verifying: Verifying, flags: list[str]
) -> None:
    facts = json.loads(spawnlog("log", "verify", *flags).stdout)
    assert facts["ok"] is True
    assert facts["difference"] is None
    assert (facts["head"], facts["events"], facts["erased"]) == (f"30:{HASH}", 20, 3)
    verifying.report = WRONG
    result = spawnlog("log", "verify", *flags)
    assert result.exit_code == 1
    facts = json.loads(result.stdout)
    assert facts["ok"] is False
    assert facts["difference"] == {
        "position": 16,
        "kind": "missing",
        "text": "position 16: it is gone",
    }


@pytest.mark.parametrize(
    "head", ["", "30", "30:", f":{HASH}", f"0:{HASH}", f"-1:{HASH}", "30:0f", f"3x:{HASH}", "30:zz"]
)
def test_a_head_that_is_none_is_refused(spawnlog: Command, verifying: Verifying, head: str) -> None:
    result = spawnlog("log", "verify", f"--head={head}")
    assert result.exit_code == 2
    assert "--head takes a position and a hash of 64 hexadecimal digits" in result.stderr
    assert verifying.asked == []


def test_what_cannot_be_verified_is_told(spawnlog: Command, verifying: Verifying) -> None:
    verifying.failure = UserError("the database went away; go on with --resume")
    result = spawnlog("log", "verify")
    assert result.exit_code == 2
    assert result.stderr == "error: the database went away; go on with --resume\n"


def test_an_interrupt_is_no_difference(spawnlog: Command, verifying: Verifying) -> None:
    verifying.failure = KeyboardInterrupt()
    result = spawnlog("log", "verify")
    assert result.exit_code == 2
    assert result.stderr == "error: interrupted before the end; go on with --resume\n"


def test_a_long_verification_says_how_far_it_is(
    spawnlog: Command, verifying: Verifying, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert spawnlog("log", "verify").stderr == ""
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    lines = spawnlog("log", "verify").stderr.splitlines()
    assert lines[:2] == ["verifying events 10 of 30", "verifying events 20 of 30"]


def test_a_verification_that_is_not_on_record_says_so(
    spawnlog: Command, verifying: Verifying
) -> None:
    assert spawnlog("log", "verify").stderr == ""
    verifying.report = replace(RIGHT, is_recorded=False)
    result = spawnlog("log", "verify")
    assert result.exit_code == 0
    assert "the database takes no record of it" in result.stderr


@pytest.mark.parametrize("content", ["", "no export\n", '{"id": 1}\n'])
def test_file_that_is_no_export_is_an_error(
    spawnlog: Command, tmp_path: Path, content: str
) -> None:
    file = tmp_path / "notes.txt"
    file.write_text(content)
    result = spawnlog("log", "verify", str(file))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "notes.txt is no file of `spawnlog log export`: line 1: " in result.stderr


HEAD: dict[str, Any] = {
    "logId": "11111111-0000-4000-8000-000000000001",
    "position": 30,
    "recordedAt": "2026-03-01T09:30:00.000Z",
    "chainHash": HASH,
    "verifications": [],
}


def verification(state: str, **more: Any) -> dict[str, Any]:
    return {
        **{"state": state, "startedBy": "admin", "origin": "server", "process": "one:7"},
        **{"startedAt": "2026-03-01T09:30:00Z", "endedAt": "2026-03-01T09:30:02.500Z"},
        **{"checked": 30, "last": 30, "difference": None, "failure": None},
        **{"stopRequestedBy": None},
        **more,
    }


def test_the_head_is_as_it_is_noted_and_given_back(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", "/v1/log", Reply(HEAD))
    result = spawnlog("log", "head", "--at", "pos:30")
    assert api.asked[0].query == {"at": "pos:30"}
    assert f"30:{HASH}" in result.stdout
    assert "spawnlog log verify" in result.stderr
    assert json.loads(spawnlog("log", "head", "-o", "json").stdout) == HEAD


@pytest.mark.parametrize(
    ("one", "shown"),
    [
        (verification("right"), "+2.500s admin server one:7 right 30 of 30"),
        (
            verification("running", endedAt=None, checked=0, last=None),
            "admin server one:7 running 0 of ?",
        ),
        (
            verification("different", checked=20, difference={"position": 21, "text": "changed"}),
            "+2.500s admin server one:7 different 20 of 30 position 21: changed",
        ),
        (
            verification("stopped", stopRequestedBy="ops"),
            "+2.500s admin server one:7 stopped 30 of 30 stopped by ops",
        ),
        (
            verification("failed", failure="the disk is \x1b[2J full"),
            r"+2.500s admin server one:7 failed 30 of 30 the disk is \x1b[2J full",
        ),
    ],
)
def test_a_verification_is_a_row_with_what_it_found(
    spawnlog: Command, api: RecordedApi, one: dict[str, Any], shown: str
) -> None:
    api.on("GET", "/v1/log", Reply({**HEAD, "verifications": [one]}))
    last = spawnlog("log", "head").stdout.splitlines()[-1]
    assert " ".join(last.split()) == f"2026-03-01 09:30:00.000 {shown}"
