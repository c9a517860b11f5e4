"""Entries planted among transcript files lead nowhere else."""

import os
import shutil
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import UUID

import pytest

from application.ports.runtimes import TranscriptEntry
from application.ports.transcripts import ARCHIVED_MARK, TranscriptFile
from infrastructure.outbound.transcripts.transcripts import StoredTranscripts
from tests.support.builders import run_commands as ask
from tests.support.builders.folders import tree_of
from tests.support.builders.logged_family import LoggedFamily
from tests.support.servers.running_log import RunningLog
from tests.support.tiers import nightly_but

# Transcripts on a disk with something outside of them that nothing may come near.

KEY = b"k" * 32
STAMP = "2026-03-01T12-00-00-000000Z"


class Ground:
    """Transcripts of one run of the agent `main`, and a folder outside that nothing comes near."""

    def __init__(self, transcripts: StoredTranscripts, folder: Path, family: LoggedFamily) -> None:
        self.transcripts = transcripts
        self.root, self.outside = folder / "data" / "transcripts", folder / "outside"
        self.run_id, self.session_id = family.id("scout"), family.session_id("scout")
        self.names = (
            f"{self.session_id}.jsonl",
            f"{self.session_id}.fork.jsonl",
            f"{self.session_id}.fork.jsonl.{os.getpid()}.part",
            f"{self.session_id}.jsonl.{os.getpid()}.part",
        )
        for place in (self.outside, self.outside / "main"):
            place.mkdir(parents=True)
            for name in self.names:
                (place / name).write_text("of somebody else")

    @property
    def agent(self) -> Path:
        """Return the agent's folder."""
        return self.root / "main"

    async def write(self, path: str | None = None) -> str:
        """Write the transcript, or see that it is at a path."""
        sealed = await self.transcripts.seal(self.run_id, key=KEY)
        if path is None:
            path = self.transcripts.file_path(
                self.run_id, session_id=self.session_id, agent_id="main"
            )
        file = TranscriptFile(self.run_id, path, sealed.bytes)
        for failure in filter(None, await self.transcripts.write_files([file])):
            raise failure
        return path

    async def begin(self) -> str:
        """Write the beginning of the child's transcript."""
        return await self.transcripts.write_fork_snapshot(
            self.run_id, session_id=self.session_id, agent_id="main", count=2
        )

    async def drop(self) -> bool:
        """Remove the beginning of the child's transcript."""
        return await self.transcripts.drop_fork_snapshot(self.session_id, "main")

    async def archive(self) -> str:
        """Rename the transcript."""
        return await self.write(f"{self.agent / self.names[0]}{ARCHIVED_MARK}{STAMP}")


ROUNDS = 20
ROUNDS_MAX = 100 * ROUNDS
"""Maximum number of rounds until one is lost, however the machine divides its time."""


Deed = Callable[[Ground], Awaitable[object]]
DEEDS: dict[str, Deed] = {
    "write": Ground.write, "begin": Ground.begin, "drop": Ground.drop, "put_away": Ground.archive
}  # fmt: skip


@pytest.fixture
async def ground(postgres: RunningLog, family: LoggedFamily, tmp_path: Path) -> Ground:
    (tmp_path / "data").mkdir()
    transcripts = StoredTranscripts(postgres.pool, tmp_path / "data" / "transcripts")
    await family.furnish("scout")
    entries = [TranscriptEntry("message", {"role": "user", "text": text}) for text in "ab"]
    assert await transcripts.fork(family.id("scout"), family.run("scout").epoch, entries)
    return Ground(transcripts, tmp_path, family)


def moved(folder: Path) -> Path:
    folder.rename(folder.with_name("moved"))
    return folder


def data_for_link(ground: Ground) -> None:
    moved(ground.root.parent).symlink_to(ground.outside)
    (ground.outside / "transcripts").symlink_to(ground.outside)


PLANTED: dict[str, Callable[[Ground], object]] = {
    "agent for link": lambda ground: moved(ground.agent).symlink_to(ground.outside),
    "root for link": lambda ground: moved(ground.root).symlink_to(ground.outside),
    "data for link": data_for_link,
    "agent for file": lambda ground: moved(ground.agent).write_text("in the way"),
    "agent for pipe": lambda ground: os.mkfifo(moved(ground.agent)),
}


@pytest.mark.parametrize("plant", nightly_but(PLANTED, ["agent for link", "agent for pipe"]))
@pytest.mark.parametrize("deed", DEEDS)
@pytest.mark.timeout(20)
async def test_what_is_planted_for_a_folder_is_refused(
    ground: Ground, plant: str, deed: str
) -> None:
    await ground.write()
    await ground.begin()
    PLANTED[plant](ground)
    outer = tree_of(ground.outside)
    with pytest.raises(OSError, match="is a link or a file, not a folder") as caught:
        await DEEDS[deed](ground)
    place = "a folder above it" if plant == "data for link" else "transcripts"
    assert place in str(caught.value.strerror)
    assert tree_of(ground.outside) == outer


async def test_data_directory_may_be_a_link(
    postgres: RunningLog, ground: Ground, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "data")
    ground.transcripts = StoredTranscripts(postgres.pool, tmp_path / "link" / "transcripts")
    assert await ground.write() == str(tmp_path / "link" / "transcripts" / "main" / ground.names[0])
    assert (ground.agent / ground.names[0]).read_bytes().count(b"\n") == 2
    await ground.archive()
    assert [path.name for path in ground.agent.iterdir()] == [f"{ground.names[0]}.deleted.{STAMP}"]


async def test_recorded_path_leads_nowhere_else(
    ground: Ground,
) -> None:
    """The data directory may have been moved since, and the record may be hostile."""
    sealed = Path(await ground.write())
    outer = tree_of(ground.outside)
    strange = str(ground.outside / "main" / sealed.name)
    await ground.write(f"{strange}.deleted.{STAMP}")
    strange_names = (f"/main/../{sealed.name}", "/..", "..", "/", "", f"{ground.outside}/main/..")
    for path in (*strange_names, f"{ground.outside}/main/.deleted.{STAMP}"):
        with pytest.raises(OSError, match="not the path of a transcript file"):
            await ground.write(path)
    assert tree_of(ground.outside) == outer
    assert [path.name for path in ground.agent.iterdir()] == [f"{sealed.name}.deleted.{STAMP}"]


@pytest.mark.parametrize("name", range(4))
async def test_links_for_files_are_replaced(ground: Ground, name: int) -> None:
    await ground.write()
    outer = tree_of(ground.outside)
    place = ground.agent / ground.names[name]
    place.unlink(missing_ok=True)
    place.symlink_to(ground.outside / "main" / place.name)
    await ground.begin()
    await ground.drop()
    await ground.write()
    await ground.archive()
    assert tree_of(ground.outside) == outer
    left = {path.name for path in ground.agent.iterdir() if not path.is_symlink()}
    assert left == {f"{ground.names[0]}.deleted.{STAMP}"}
    place.unlink(missing_ok=True)
    place.symlink_to(ground.outside / "main" / ground.names[0])
    await ground.archive()
    assert tree_of(ground.outside) == outer


def a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def a_link_to_the_same(path: Path) -> None:
    path.rename(path.with_name("aside"))
    path.symlink_to("aside")


CHANGES: dict[str, Callable[[Path], object]] = {
    "changed": lambda path: path.write_bytes(path.read_bytes().replace(b'"a"', b'"x"')),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"\n"),
    "shorter": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "empty": lambda path: path.write_bytes(b""),
    "huge": lambda path: os.truncate(path, 1 << 40),
    "open to all": lambda path: path.chmod(0o644),
    "a pipe": a_pipe,
    "a link": a_link_to_the_same,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.timeout(20)
async def test_altered_beginning_is_replaced(
    ground: Ground, change: Callable[[Path], object]
) -> None:
    path = Path(await ground.begin())
    content = path.read_bytes()
    change(path)
    assert await ground.begin() == str(path)
    assert path.read_bytes() == content
    assert not path.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o600


@contextmanager
def racing(act: Callable[[], None]) -> Iterator[None]:
    """Repeat an act in another thread during the block."""
    over = threading.Event()

    def race() -> None:
        while not over.is_set():
            with suppress(OSError):
                act()

    thread = threading.Thread(target=race)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.server
@pytest.mark.parametrize("place", ["agent", "root"])
async def test_race_for_a_folder_gets_nothing_outside(ground: Ground, place: str) -> None:
    contested: Path = getattr(ground, place)
    outer, refused = tree_of(ground.outside), set[str]()
    aside = ground.root.parent / "aside"

    def swap() -> None:
        if contested.is_symlink():
            contested.unlink()
            return
        with suppress(OSError):
            shutil.rmtree(aside)
        with suppress(OSError):
            contested.rename(aside)
        with suppress(OSError):
            contested.symlink_to(ground.outside)

    with racing(swap):
        for number in range(ROUNDS_MAX):
            for name, deed in DEEDS.items():
                try:
                    await deed(ground)
                except OSError:
                    refused.add(name)
            assert tree_of(ground.outside) == outer
            if number >= ROUNDS and refused >= {"write", "begin"}:
                break
    assert refused >= {"write", "begin"}, "the race was never lost: it proves nothing"
    with suppress(OSError):
        contested.unlink()
    assert Path(await ground.write()).read_bytes().count(b"\n") == 2


async def test_claim_is_independent_of_files(ground: Ground, family: LoggedFamily) -> None:
    """A refused write is retried once the link is gone."""
    await ground.write()
    PLANTED["agent for link"](ground)
    with pytest.raises(OSError, match="is a link or a file"):
        await ground.begin()
    ground.agent.unlink()
    assert UUID(Path(await ground.begin()).name[:36]) == ground.session_id
    await family.tell("scout", ask.take_step(family.run("scout").epoch))
