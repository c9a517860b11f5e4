"""Four servers, sixty-four callers at each, children that end and servers that are killed: at no
moment has the session more children than its cap, and in the end no place is lost."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.servers.data_directories import copied, new_place
from world.fleet.cap_storm import SERVERS, CapStorm, storm_configuration, verified
from world.fleet.fleet import Fleet

SECONDS = 3.0
AWAY_SECONDS_MAX = 2.0
SECONDS_MAX = 110
CHILDREN_MIN = 3
"""How many times the cap are admitted before a storm ends: else no place was ever used again."""

pytestmark = [pytest.mark.kill, pytest.mark.nightly, pytest.mark.timeout(SECONDS_MAX)]


@pytest.fixture(scope="module")
def fleet(made_data_dir: Path) -> Iterator[Fleet]:
    with new_place() as place:
        servers = Fleet(copied(made_data_dir, place / "data"), storm_configuration(1), SERVERS)
        with servers.standing():
            yield servers
        for server in servers.servers:
            assert " ERROR " not in server.log(), server.log()


@pytest.mark.parametrize("cap", [1, 5, 20])
async def test_the_cap_is_kept_and_no_place_is_lost(fleet: Fleet, cap: int) -> None:
    fleet.reload(storm_configuration(cap))
    storm = CapStorm(fleet, cap, random.Random(cap), away_seconds_max=AWAY_SECONDS_MAX)
    print(await storm.blow(SECONDS, admitted_min=CHILDREN_MIN * cap))
    assert storm.ledger.faults == []
    assert set(storm.ledger.statuses) <= {201, 403, 503}
    assert storm.ledger.most == cap


def test_the_log_of_the_storms_is_sound(fleet: Fleet) -> None:
    said = verified(fleet)
    assert said.returncode == 0, said.stdout
