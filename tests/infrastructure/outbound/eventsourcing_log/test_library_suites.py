"""The library's own suites, on a log: each test in a schema of its own."""

import inspect
from types import ModuleType
from typing import Any, ClassVar
from unittest import TestCase
from uuid import UUID, uuid4

import pytest
from eventsourcing.persistence import (
    AggregateRecorder,
    ApplicationRecorder,
    ProcessRecorder,
    TrackingRecorder,
)
from eventsourcing.postgres import PostgresAggregateRecorder, PostgresTrackingRecorder

# Not their classes by name: pytest would collect them here as well.
from eventsourcing.tests import application, persistence
from eventsourcing.utils import Environment

from infrastructure.outbound.eventsourcing_log.factory import LogFactory
from infrastructure.outbound.eventsourcing_log.recorder import (
    LogApplicationRecorder,
    LogProcessRecorder,
)
from tests.support.builders.eventsourcing_environments import FACTORY, environment_of, own_schema

pytestmark = [pytest.mark.server, pytest.mark.nightly]

LEFT_OUT = {
    "TranscoderTestCase": "is about turning objects into bytes, before anything is stored; the"
    " persistence module has no transcoder of its own",
}
"""Suites of the library that are not run here, with the reason."""


class OnALog(TestCase):
    """Gives each test an environment, and closes what it made of it."""

    id_type: ClassVar[str] = "uuid"

    @pytest.fixture(autouse=True)
    def _on_a_schema(self, shared_database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        variables = environment_of(
            shared_database_url, own_schema(), ORIGINATOR_ID_TYPE=self.id_type
        )
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        self.env = Environment("Suite", variables)

    def factory_of_its_own(self) -> LogFactory:
        factory = LogFactory(self.env)
        self.addCleanup(factory.close)
        return factory

    def new_originator_id(self) -> UUID | str:
        return uuid4() if self.id_type == "uuid" else f"thing-{uuid4()}"


class TestAggregateRecorder(OnALog, persistence.AggregateRecorderTestCase):
    def create_recorder(self) -> AggregateRecorder:
        return self.factory_of_its_own().aggregate_recorder("snapshots")


class TestAggregateRecorderWithTextIds(TestAggregateRecorder):
    id_type = "text"


class TestApplicationRecorder(OnALog, persistence.ApplicationRecorderTestCase[ApplicationRecorder]):
    def create_recorder(self) -> ApplicationRecorder:
        return self.factory_of_its_own().application_recorder()

    def test_insert_subscribe(self) -> None:
        self.optional_test_insert_subscribe()


class TestApplicationRecorderWithTextIds(TestApplicationRecorder):
    id_type = "text"


class TestTrackingRecorder(OnALog, persistence.TrackingRecorderTestCase):
    def create_recorder(self) -> TrackingRecorder:
        return self.factory_of_its_own().tracking_recorder()


class TestProcessRecorder(OnALog, persistence.ProcessRecorderTestCase):
    def create_recorder(self) -> ProcessRecorder:
        return self.factory_of_its_own().process_recorder()


class TestProcessRecorderWithTextIds(TestProcessRecorder):
    id_type = "text"


class TestProcessRecorderAsApplicationRecorder(TestApplicationRecorder):
    def create_recorder(self) -> ApplicationRecorder:
        return self.factory_of_its_own().process_recorder()


class TestNotificationIdsDoNotInterleave(
    OnALog, persistence.NonInterleavingNotificationIDsBaseCase
):
    def create_recorder(self) -> ApplicationRecorder:
        return self.factory_of_its_own().application_recorder()


class ViewOfATest(PostgresTrackingRecorder):
    """What a projection of an application's would be."""


class TestInfrastructureFactory(OnALog, persistence.InfrastructureFactoryTestCase[LogFactory]):
    def expected_factory_class(self) -> type[LogFactory]:
        return LogFactory

    def expected_aggregate_recorder_class(self) -> type[AggregateRecorder]:
        return PostgresAggregateRecorder

    def expected_application_recorder_class(self) -> type[ApplicationRecorder]:
        return LogApplicationRecorder

    def expected_tracking_recorder_class(self) -> type[TrackingRecorder]:
        return PostgresTrackingRecorder

    def tracking_recorder_subclass(self) -> type[TrackingRecorder]:
        return ViewOfATest

    def expected_process_recorder_class(self) -> type[ProcessRecorder]:
        return LogProcessRecorder


class TestExampleApplication(OnALog, application.ExampleApplicationTestCase):
    expected_factory_topic = f"{FACTORY}:LogFactory"


@pytest.mark.filterwarnings("default:'log' is deprecated:DeprecationWarning")
class TestApplication(OnALog, application.ApplicationTestCase):
    pass


def suites_of(module: ModuleType) -> dict[str, set[str]]:
    """The tests of each suite that a module of the library defines, optional ones included."""
    found = {
        name: {one for one in dir(kind) if one.startswith(("test", "optional_test"))}
        for name, kind in inspect.getmembers(module, inspect.isclass)
        if issubclass(kind, TestCase) and kind.__module__ == module.__name__
    }
    return {name: tests for name, tests in found.items() if tests}


SUITES = suites_of(persistence) | suites_of(application)
RUN: list[type[Any]] = [
    kind
    for name, kind in sorted(globals().items())
    if name.startswith("Test") and isinstance(kind, type) and issubclass(kind, OnALog)
]


@pytest.mark.parametrize("suite", sorted(SUITES))
def test_a_suite_of_the_library_is_run_here_or_left_out_for_a_reason(suite: str) -> None:
    runs = [kind for kind in RUN if suite in {one.__name__ for one in kind.__mro__}]
    assert bool(runs) != (suite in LEFT_OUT)
    for kind in runs:
        for test in SUITES[suite]:
            name = test.removeprefix("optional_")
            assert callable(getattr(kind, name)), f"{kind.__name__} does not run {test}"
            assert getattr(kind, name).__module__ != __name__ or test.startswith("optional_")


def test_what_is_left_out_is_there_to_be_run() -> None:
    assert set(LEFT_OUT) <= set(SUITES)
