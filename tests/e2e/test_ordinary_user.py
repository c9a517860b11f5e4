"""The stories as a user without any rights, and as a root whose home no other user may enter."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e import test_straight_path as straight
from tests.support.servers.data_directories import new_place
from tests.support.servers.embedded_servers import NOBODY, as_ordinary_user, postmaster_of
from tests.support.servers.preloaded import ROOT
from tests.support.servers.server import Server
from tests.support.servers.stories import stories
from tests.support.tiers import nightly_but

pytestmark = pytest.mark.server

STORIES: list[Callable[[Server], None]] = [
    story for name, story in vars(straight).items() if name.startswith("test_")
]


def owner_of(pid: int) -> int:
    """Return the user id of a process."""
    return Path(f"/proc/{pid}").stat().st_uid


def readable_checkout(place: Path) -> Path:
    """Copy the program to a place that the user can read, since this checkout may be readable by
    root only.
    """
    copy = place / "checkout"
    ignored = shutil.ignore_patterns("__pycache__")
    for floor in ("domain", "application", "infrastructure", "alembic"):
        shutil.copytree(ROOT / floor, copy / floor, ignore=ignored)
    return copy


@pytest.fixture(scope="module")
def ordinary() -> Iterator[Server]:
    """Yield a server of an ordinary user, in a home that was empty."""
    with new_place() as place:
        home, notes = place / "home", place / "notes"
        for folder in (home, notes):
            folder.mkdir(mode=0o700)
        if os.geteuid() == 0:
            for folder in (place, home, notes):
                os.chown(folder, NOBODY, NOBODY)
        environment = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
        server = Server(
            home / "spawnlog",
            stories(notes),
            folder=notes,
            environment=environment,
            prefix=as_ordinary_user(),
        )
        server.root = readable_checkout(place)
        with server:
            yield server
        assert " ERROR " not in server.log(), server.log()


@pytest.mark.parametrize(
    "story",
    nightly_but(STORIES, STORIES[:2]),
    ids=lambda story: story.__name__.removeprefix("test_"),
)
def test_for_an_ordinary_user(ordinary: Server, story: Callable[[Server], None]) -> None:
    story(ordinary)


def test_nothing_of_an_ordinary_user_runs_as_root(ordinary: Server) -> None:
    run_id = ordinary.accepted("waiter", session="agent:main:whose")
    child = int(ordinary.note(f"{run_id}.began"))
    assert ordinary.process is not None
    user = NOBODY if os.geteuid() == 0 else os.geteuid()
    database = postmaster_of(ordinary.data_dir / "postgres")
    assert {owner_of(pid) for pid in (child, ordinary.process.pid, database)} == {user}
    ordinary.let_go(run_id)
    assert ordinary.run(run_id, "announced")["outcome"] == "success"


@pytest.mark.nightly
@pytest.mark.skipif(os.geteuid() != 0, reason="only root's database runs as another user")
def test_roots_database_runs_as_another_user_in_a_home_that_only_root_may_enter(
    server: Server,
) -> None:
    home = server.data_dir.parent
    assert home.stat().st_uid == 0
    assert home.stat().st_mode & 0o777 == 0o700
    assert owner_of(postmaster_of(server.data_dir / "postgres")) != 0
    run_id = server.accepted("plain", session="agent:main:root")
    assert server.run(run_id, "announced")["outcome"] == "success"
