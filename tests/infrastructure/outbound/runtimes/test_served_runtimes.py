"""Runtimes by the type that the configuration names."""

import pytest

from application.ports.runtimes import CannotLaunch
from domain.configuration.runtimes import ScriptedRuntime, WorkerRuntime
from infrastructure.outbound.runtimes.by_type import RuntimesByType
from infrastructure.outbound.runtimes.scripted import ScriptedRuntimes, ScriptedSession
from tests.support.builders.launches import launch

SERVED = RuntimesByType({"scripted": ScriptedRuntimes()})


async def test_a_launch_goes_to_what_runs_its_type() -> None:
    session = await SERVED.open(launch(ScriptedRuntime(type="scripted")))
    assert isinstance(session, ScriptedSession)


async def test_a_type_that_is_not_served_is_refused_with_those_that_are() -> None:
    with pytest.raises(CannotLaunch, match=r'"worker", which this server does not run.*scripted'):
        await SERVED.open(launch(WorkerRuntime(type="worker", queue="gpu")))
