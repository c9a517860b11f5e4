"""A workspace with something outside of it, and what is known to belong there."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from domain.context.attachment_manifest import manifest_text, relative_dir
from domain.context.attachments import AcceptedFiles, accept_file
from infrastructure.outbound.files.attachments import WorkspaceAttachments
from tests.support.builders.folder_trees import tree_of

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
        """The workspace as it is on record."""
        return str(self.workspace)

    @property
    def folder(self) -> Path:
        """Where the files of the run are."""
        return self.workspace / relative_dir(RUN)

    def outer_tree(self) -> Mapping[str, str]:
        """All that is outside."""
        return tree_of(self.outside)

    def tree(self) -> Mapping[str, str]:
        """All that is in the workspace."""
        return tree_of(self.workspace)

    def contents(self) -> dict[str, bytes]:
        """The files of the run by name."""
        return {path.name: path.read_bytes() for path in self.folder.iterdir()}

    async def write(self, judged: AcceptedFiles = FILES, *, is_resumed: bool = False) -> None:
        """Write the files of the run."""
        await self.files.write(
            self.root, RUN, judged, is_resumed=is_resumed, timeout_seconds=SECONDS
        )

    async def remove(self) -> str:
        """Remove them."""
        return await self.files.remove(self.root, RUN, timeout_seconds=SECONDS)


def ground_in(folder: Path) -> Ground:
    """A new one; the folder has every link resolved afterwards."""
    workspace, outside = folder.resolve() / "workspace", folder.resolve() / "outside"
    workspace.mkdir()
    (outside / "kept").mkdir(parents=True)
    (outside / "secret").write_text("canary")
    (workspace / "own.txt").write_text("of the agent")
    return Ground(workspace, outside, WorkspaceAttachments())


def expected_contents(judged: AcceptedFiles = FILES, run_id: UUID = RUN) -> dict[str, bytes]:
    """What lies in the folder of a run whose files were written."""
    manifest = manifest_text(relative_dir(run_id), judged.files).encode()
    return {**{file.name: file.content for file in judged.files}, ".manifest.json": manifest}
