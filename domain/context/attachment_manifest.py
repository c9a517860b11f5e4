"""What is written down of attached files: the manifest that lies beside them, the receipt that
the caller is given, and the list that is kept so that both can be told again."""

import json
from collections.abc import Sequence
from uuid import UUID

from msgspec import DecodeError

from domain.context.attachments import AcceptedFile, AcceptedFiles, accept_file
from domain.values.record import Fact

FOLDERS = (".openclaw", "attachments")
"""Where the folders of all runs are, below the workspace of a child."""


class FilesMismatch(ValueError):
    """Bytes that were set aside are not those of the list, or the list cannot be read."""


class ListedFile(Fact):
    """A file without its content."""

    name: str
    bytes: int
    sha256: str
    mime_type: str | None = None


class FileList(Fact):
    """The files of a spawn in their order, as they are kept beside the log."""

    files: tuple[ListedFile, ...]

    @property
    def total_bytes(self) -> int:
        """The bytes of all contents."""
        return sum(file.bytes for file in self.files)


def relative_dir(run_id: UUID) -> str:
    """The folder of a run's files, from the child's workspace, with `/` on every system."""
    return "/".join((*FOLDERS, str(run_id)))


def file_list(judged: AcceptedFiles) -> FileList:
    """The list of files that may be written."""
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
    """The list as a text to keep: compact JSON, without what is not known."""
    return files.to_json().decode()


def parse_file_list(text: str) -> FileList:
    """The list that `kept_text` wrote. Raises `FilesMismatch`."""
    try:
        return FileList.from_json(text)
    except DecodeError:
        raise FilesMismatch("the list of attached files cannot be read") from None


def restore_files(listed: FileList, bodies: Sequence[bytes]) -> AcceptedFiles:
    """The files of a list with their contents, in its order. Raises `FilesMismatch` when one is
    missing, or is not the one that was judged."""
    if len(bodies) != len(listed.files):
        raise FilesMismatch(f"{len(bodies)} of {len(listed.files)} attached files are set aside")
    files = tuple(
        accept_file(one.name, body, one.mime_type)
        for one, body in zip(listed.files, bodies, strict=True)
    )
    for number, (one, file) in enumerate(zip(listed.files, files, strict=True), start=1):
        if file.sha256 != one.sha256:
            raise FilesMismatch(f"attached file {number} is not the one that was judged")
    return AcceptedFiles(files)


def manifest_text(folder: str, files: Sequence[AcceptedFile]) -> str:
    """The file `.manifest.json` beside the files in `folder`, a relative one."""
    listed = file_list(AcceptedFiles(tuple(files)))
    manifest = {
        "relDir": folder,
        "count": len(listed.files),
        "totalBytes": listed.total_bytes,
        "files": [
            {"name": one.name, "bytes": one.bytes, "sha256": one.sha256} for one in listed.files
        ],
    }
    return json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
