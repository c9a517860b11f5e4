"""Token counts of a run whose revision was erased."""

from types import SimpleNamespace
from typing import cast

import pytest

from application.delivery.priced_usage import priced_usage
from application.log.unit_of_work import UnitOfWork
from application.ports.configurations import RevisionErasedError
from domain.delivery.transcript import UsageEntry
from domain.run.state import Run

RUN = cast(Run, SimpleNamespace(run_id="r", config_revision=1, agent_id="main", plan=None))


class ErasedRevisions:
    async def at(self, revision: int) -> None:
        raise RevisionErasedError(f"the text of configuration revision {revision} was erased")


WORK = cast(UnitOfWork, SimpleNamespace(configurations=ErasedRevisions()))


@pytest.mark.parametrize(("warns", "warnings"), [(False, 0), (True, 1)])
async def test_missing_prices_are_logged_at_the_end_alone(
    warns: bool, warnings: int, caplog: pytest.LogCaptureFixture
) -> None:
    usage = await priced_usage(WORK, RUN, [UsageEntry(1, 2, "m")], warns=warns)
    assert usage is not None
    assert usage.input_tokens == 1
    assert len(caplog.records) == warnings
