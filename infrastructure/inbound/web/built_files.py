"""Files of the web page, as `make page` builds them."""

import gzip
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

FILES_MAX = 200
FILE_BYTES_MAX = 4 * 1024 * 1024
PACKED_FROM_BYTES = 1024
MEDIA_TYPES: Mapping[str, str] = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
"""Media types of the served files. Files of other types are not served."""

_HERE = Path(__file__).resolve()
IN_PACKAGE = _HERE.with_name("built")
IN_CHECKOUT = _HERE.parents[3] / ".build" / "page" / "dist"


@dataclass(frozen=True, slots=True)
class BuiltFile:
    """A file of the page. `packed` is its gzip form, or None if that saves nothing."""

    media_type: str
    content: bytes
    packed: bytes | None


def find_built_files(*, package: Path = IN_PACKAGE, checkout: Path = IN_CHECKOUT) -> Path | None:
    """Return the folder of the page in the package or checkout, or None if it was not built."""
    folders = (package, checkout)
    return next((folder for folder in folders if (folder / "index.html").is_file()), None)


def read_built_files(folder: Path) -> Mapping[str, BuiltFile]:
    """Return all files of the page by their path below its root: `index.html`, `assets/…`."""
    return dict(_read(folder))


def _read(folder: Path) -> Iterator[tuple[str, BuiltFile]]:
    paths = sorted(path for path in folder.rglob("*") if path.suffix in MEDIA_TYPES)
    for path in paths[:FILES_MAX]:
        with path.open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
        if len(content) > FILE_BYTES_MAX:
            raise ValueError(f"{path.name} of the page has more than {FILE_BYTES_MAX} bytes")
        packed = gzip.compress(content, mtime=0) if len(content) >= PACKED_FROM_BYTES else None
        yield (
            path.relative_to(folder).as_posix(),
            BuiltFile(MEDIA_TYPES[path.suffix], content, packed),
        )
