"""Folders of agents and attachments, and their contents."""

import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from application.log.envelope import Actor
from application.ports.configurations import PinnedConfiguration
from domain.context.attachment_manifest import manifest_text, relative_dir
from domain.context.attachments import AcceptedFiles, accept_file
from domain.plan.credentials import FoundCredentials
from infrastructure.outbound.credentials.agent_credentials import AgentCredentials
from infrastructure.outbound.credentials.auth_profiles import FILE_NAME
from infrastructure.outbound.files.attachments import WorkspaceAttachments
from tests.support.builders.configurations import load_values
from tests.support.servers.running_log import RunningLog
from tests.support.servers.server_configurations import ServerConfigurations

# Snapshot of a folder, to compare two moments.


def tree_of(folder: Path) -> Mapping[str, str]:
    """Return each entry below the folder, and the folder (`.`): kind, mode, and content or target.

    Links are not followed.
    """
    return {os.path.relpath(path, folder): _told(path) for path in _below(folder)}


def _below(folder: Path) -> Iterator[str]:
    yield str(folder)
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            yield os.path.join(place, name)


def _told(path: str) -> str:
    state = os.lstat(path)
    mode = f"{stat.S_IMODE(state.st_mode):04o}"
    if stat.S_ISDIR(state.st_mode):
        return f"folder {mode}"
    if stat.S_ISLNK(state.st_mode):
        return f"link to {os.readlink(path)}"
    if stat.S_ISREG(state.st_mode):
        return f"file {mode} {hashlib.sha256(Path(path).read_bytes()).hexdigest()}"
    return f"other {mode}"


COMMAND = {"type": "command", "command": ["true"]}


def api_key(provider: str, key: object, **more: Any) -> dict[str, Any]:
    """Return a profile of type `api_key`."""
    return {"type": "api_key", "provider": provider, "key": key, **more}


def write_profiles(folder: Path, profiles: object, mode: int = 0o600) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / FILE_NAME
    text = profiles if isinstance(profiles, str) else json.dumps({"profiles": profiles})
    path.write_text(text, "utf-8")
    path.chmod(mode)
    return path


class AgentFolders:
    """The agents `main` and `helper`, with a command as runtime by default, and `player`, which
    plays back. `now` is the time.
    """

    def __init__(self, running: RunningLog, folder: Path) -> None:
        self.now = 1_000.0
        self.agents = folder / "agents"
        self._configurations = ServerConfigurations(running, folder / "workspaces")
        self._folder = folder
        self.credentials = AgentCredentials(
            self._configurations.files, self.agents, now=lambda: self.now
        )

    async def configured(
        self, env: dict[str, Any] | None = None, **helper: Any
    ) -> PinnedConfiguration:
        """Activate and return a revision with this helper and this `env` section."""
        listed = [
            {"id": "main"},
            {"id": "helper", **helper},
            {"id": "player", "runtime": {"type": "scripted"}},
        ]
        values: dict[str, Any] = {"agents": {"defaults": {"runtime": COMMAND}, "list": listed}}
        if env is not None:
            values["env"] = env
        loaded = load_values(values, folder=self._folder)
        await self._configurations.activate(loaded, Actor(kind="system"))
        return self._configurations.current()

    async def found(self, pinned: PinnedConfiguration, agent_id: str) -> FoundCredentials:
        return await self.credentials.found(pinned, pinned.configuration.effective_agent(agent_id))

    def write(self, agent_id: str, profiles: object, mode: int = 0o600) -> Path:
        return write_profiles(self.agents / agent_id / "agent", profiles, mode)


# A workspace, files outside of it, and the expected content.

RUN = UUID("6f0c1c1e-3d0e-4c52-9d4e-0f6a4d4b7c11")
OTHER_RUN = UUID("0d9f3f3e-54a7-4a0c-8a62-5f3f0a2b9d22")
FILES = AcceptedFiles((accept_file("a.txt", b"first"), accept_file("b c", b"\0\xff" * 5000)))
SECONDS = 10.0


@dataclass(frozen=True)
class Ground:
    """`outside` holds a file and a folder that nothing may come near."""

    workspace: Path
    outside: Path
    files: WorkspaceAttachments

    @property
    def root(self) -> str:
        return str(self.workspace)

    @property
    def folder(self) -> Path:
        return self.workspace / relative_dir(RUN)

    def outer_tree(self) -> Mapping[str, str]:
        return tree_of(self.outside)

    def tree(self) -> Mapping[str, str]:
        return tree_of(self.workspace)

    def contents(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.folder.iterdir()}

    async def write(
        self,
        judged: AcceptedFiles = FILES,
        *,
        root: str | None = None,
        run_id: UUID = RUN,
        is_resumed: bool = False,
        timeout_seconds: float = SECONDS,
        during: Callable[[], None] | None = None,
    ) -> None:
        """Write the files of the run, or of another one below another root."""
        await self.files.write(
            self.root if root is None else root,
            run_id,
            judged,
            is_resumed=is_resumed,
            timeout_seconds=timeout_seconds,
            during=during,
        )

    async def remove(self, run_id: UUID = RUN, *, timeout_seconds: float = SECONDS) -> str:
        return await self.files.remove(self.root, run_id, timeout_seconds=timeout_seconds)


def ground_in(folder: Path) -> Ground:
    """Return a new ground, whose folder has every link resolved."""
    workspace, outside = folder.resolve() / "workspace", folder.resolve() / "outside"
    workspace.mkdir()
    (outside / "kept").mkdir(parents=True)
    (outside / "secret").write_text("canary")
    (workspace / "own.txt").write_text("of the agent")
    return Ground(workspace, outside, WorkspaceAttachments())


def expected_contents(judged: AcceptedFiles = FILES, run_id: UUID = RUN) -> dict[str, bytes]:
    manifest = manifest_text(relative_dir(run_id), judged.files).encode()
    return {**{file.name: file.content for file in judged.files}, ".manifest.json": manifest}
