"""Metadata of attached files: the manifest in their folder, and the stored list.

The manifest and the caller's receipt are rebuilt from the stored list.
"""

import json
from collections.abc import Sequence
from uuid import UUID

from msgspec import DecodeError

from domain.context.attachments import AcceptedFile, AcceptedFiles, accept_file
from domain.values.record import Fact

FOLDERS = (".openclaw", "attachments")
"""Parent folder of all attachment folders, below a child's workspace."""


class FilesMismatchError(ValueError):
    """The staged bytes do not match the file list, or the list cannot be read."""


class ListedFile(Fact):
    """Metadata of a file, without its content."""

    name: str
    bytes: int
    sha256: str
    mime_type: str | None = None


class FileList(Fact):
    """The files of a spawn in order, as stored beside the log."""

    files: tuple[ListedFile, ...]

    @property
    def total_bytes(self) -> int:
        """Return the total size of all contents."""
        return sum(file.bytes for file in self.files)


def relative_dir(run_id: UUID) -> str:
    """Return a run's attachment folder, relative to the workspace, with `/` on every system."""
    return "/".join((*FOLDERS, str(run_id)))


def file_list(judged: AcceptedFiles) -> FileList:
    """Return the metadata of accepted files."""
    return FileList(
        files=tuple(
            ListedFile(
                name=file.name,
                bytes=len(file.content),
                sha256=file.sha256,
                mime_type=file.mime_type,
            )
            for file in judged.files
        )
    )


def render_file_list(files: FileList) -> str:
    """Return the list as compact JSON for storage, omitting unknown values."""
    return files.to_json().decode()


def parse_file_list(text: str) -> FileList:
    """Parse a list that `render_file_list` wrote.

    Raises:
        FilesMismatchError: The text cannot be read.
    """
    try:
        return FileList.from_json(text)
    except DecodeError:
        raise FilesMismatchError("the list of attached files is unreadable") from None


def restore_files(listed: FileList, bodies: Sequence[bytes]) -> AcceptedFiles:
    """Combine a file list with the staged contents, both in the same order.

    Raises:
        FilesMismatchError: A file is missing, or its hash differs from the listed one.
    """
    if len(bodies) != len(listed.files):
        raise FilesMismatchError(
            f"only {len(bodies)} of {len(listed.files)} attached files are stored"
        )
    files = tuple(
        accept_file(entry.name, body, entry.mime_type)
        for entry, body in zip(listed.files, bodies, strict=True)
    )
    for number, (entry, file) in enumerate(zip(listed.files, files, strict=True), start=1):
        if file.sha256 != entry.sha256:
            raise FilesMismatchError(f"attached file {number} differs from the validated one")
    return AcceptedFiles(files)


def manifest_text(folder: str, files: Sequence[AcceptedFile]) -> str:
    """Return the content of `.manifest.json`, which is written beside the files.

    Args:
        folder: Folder of the files, relative to the workspace.
        files: The files, in order.
    """
    listed = file_list(AcceptedFiles(tuple(files)))
    manifest = {
        "relDir": folder,
        "count": len(listed.files),
        "totalBytes": listed.total_bytes,
        "files": [
            {"name": file.name, "bytes": file.bytes, "sha256": file.sha256} for file in listed.files
        ],
    }
    return json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
