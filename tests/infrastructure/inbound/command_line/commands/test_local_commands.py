"""Commands that start or mend a server: what they pass on, and how failures are told.

What they call is made elsewhere; here something of the same shape stands in its place.
"""

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import pytest

from infrastructure.contract.errors import UserError
from infrastructure.contract.operations import OnProgress, RebuildProgress, ServeOptions
from tests.support.servers.command_line import Command


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
