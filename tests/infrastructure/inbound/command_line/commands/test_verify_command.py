"""`spawnlog log verify`: what it passes on, what it prints and with which status it ends.

What it calls is made elsewhere; here something of the same shape stands in its place.
"""

import json
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType

import pytest

from application.ports.verifications import Difference
from infrastructure.contract.errors import UserError
from infrastructure.contract.operations import (
    OnVerifyProgress,
    ServeOptions,
    VerifiedCounts,
    VerifyOptions,
    VerifyReport,
)
from infrastructure.inbound.command_line.display import progress
from tests.support.servers.command_line import Command

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
class Composition:
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
def composition(monkeypatch: pytest.MonkeyPatch) -> Composition:
    stand_in = Composition()
    module = ModuleType("infrastructure.server.operations")
    module.verify = stand_in.verify  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "infrastructure.server.operations", module)
    return stand_in


def test_a_right_log_exits_with_0_and_prints_its_head_last(
    spawnlog: Command, composition: Composition
) -> None:
    result = spawnlog("log", "verify", "--data-dir", "d")
    assert result.exit_code == 0
    assert "20 events behind position 10 were right, verified in 0.50 s (40 a second)" in (
        result.stdout
    )
    assert "7 texts and 1 transcripts; 3 erased with their keys" in result.stdout
    assert result.stdout.splitlines()[-1] == f"30:{HASH}"
    assert composition.options == [ServeOptions(data_dir=Path("d"))]
    assert composition.asked == [VerifyOptions()]


def test_each_flag_of_a_verification_is_passed_on(
    spawnlog: Command, composition: Composition
) -> None:
    flags = ["--head", f"30:{HASH.upper()}", "--resume", "--state", "s.json"]
    spawnlog("log", "verify", *flags, "--database-url", "postgresql://h/d", "--config", "c.json5")
    head = (30, bytes.fromhex(HASH))
    assert composition.asked == [VerifyOptions(head=head, resume=True, state_file=Path("s.json"))]
    given = ServeOptions(database_url="postgresql://h/d", config=Path("c.json5"))
    assert composition.options == [given]


def test_a_difference_exits_with_1_and_is_named(
    spawnlog: Command, composition: Composition
) -> None:
    composition.report = WRONG
    result = spawnlog("log", "verify")
    assert result.exit_code == 1
    assert result.stderr == "error: position 16: it is gone\n"
    assert HASH not in result.stdout, "the head of a log that is wrong is not to be noted"


@pytest.mark.parametrize("flags", [["--json"], ["-o", "json"]])
def test_the_answer_is_json_when_asked(
    spawnlog: Command, composition: Composition, flags: list[str]
) -> None:
    facts = json.loads(spawnlog("log", "verify", *flags).stdout)
    assert facts["ok"] is True
    assert facts["difference"] is None
    assert (facts["head"], facts["events"], facts["erased"]) == (f"30:{HASH}", 20, 3)
    composition.report = WRONG
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
def test_a_head_that_is_none_is_refused(
    spawnlog: Command, composition: Composition, head: str
) -> None:
    result = spawnlog("log", "verify", f"--head={head}")
    assert result.exit_code == 2
    assert "--head takes a position and a hash of 64 hexadecimal digits" in result.stderr
    assert composition.asked == []


def test_what_cannot_be_verified_is_told(spawnlog: Command, composition: Composition) -> None:
    composition.failure = UserError("the database went away; go on with --resume")
    result = spawnlog("log", "verify")
    assert result.exit_code == 2
    assert result.stderr == "error: the database went away; go on with --resume\n"


def test_an_interrupt_is_no_difference(spawnlog: Command, composition: Composition) -> None:
    composition.failure = KeyboardInterrupt()
    result = spawnlog("log", "verify")
    assert result.exit_code == 2
    assert result.stderr == "error: interrupted before the end; go on with --resume\n"


def test_a_long_verification_says_how_far_it_is(
    spawnlog: Command, composition: Composition, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert spawnlog("log", "verify").stderr == ""
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    lines = spawnlog("log", "verify").stderr.splitlines()
    assert lines[:2] == ["verifying events 10 of 30", "verifying events 20 of 30"]


def test_a_verification_that_is_not_on_record_says_so(
    spawnlog: Command, composition: Composition
) -> None:
    assert spawnlog("log", "verify").stderr == ""
    composition.report = replace(RIGHT, is_recorded=False)
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
