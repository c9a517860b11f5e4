"""Hostile requests: files at forbidden places, and invalid files.

One configuration, `LIMITS`, judges all of them, so that one server can be given each. Each has its
expected result: the refusal, or the names of the stored files.
"""

import base64
import os
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from domain.configuration.tools import Attachments
from domain.context.attachments import RequestedAttachment

CONFIGURATION: Mapping[str, object] = {
    "enabled": True,
    "maxFiles": 50,
    "maxFileBytes": 1024,
    "maxTotalBytes": 4096,
}


"""`tools.sessions_spawn.attachments` of a server for these requests."""


LIMITS = Attachments.model_validate(CONFIGURATION)
INVALID = "attachments_invalid_name ("
DUPLICATE = "attachments_duplicate_name ("
NOT_BASE64 = "attachments_invalid_base64_or_too_large"


@dataclass(frozen=True)
class HostileRequest:
    """A request. `refusal` is the beginning of the refusal; None if the files are stored under
    `names`.
    """

    title: str
    asked: tuple[RequestedAttachment, ...]
    refusal: str | None = None
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.title

    @property
    def is_text(self) -> bool:
        """Return True if JSON in UTF-8 can hold it: no half of a surrogate pair."""
        texts = [text for request in self.asked for text in (request.name, request.content)]
        return not any("\ud800" <= sign <= "\udfff" for text in texts for sign in text)

    def body(self) -> list[dict[str, str]]:
        """Return the `attachments` of a request over HTTP."""
        return [
            {
                "name": request.name,
                "content": request.content,
                **({"encoding": request.encoding} if request.encoding else {}),
            }
            for request in self.asked
        ]


def hostile_requests() -> list[HostileRequest]:
    """Return all requests, each with its own title."""
    return [*_refused_names(), *_stored_names(), *_pairs(), *_contents(), *_sizes()]


def _refused_names() -> Iterator[HostileRequest]:
    paths = (
        "..", ".", "../up", "../../etc/passwd", "/etc/passwd", "a/b", "a/", "/", "./a", "a/../b",
        "..\\up", "C:\\a", "\\\\host\\share", "a\\", "~/a", ".openclaw/x", "a\0b", "a\0/../b",
    )  # fmt: skip
    manifests = (".manifest.json", " .manifest.json\t", ".MANIFEST.JSON", ".manife\u017ft.json")
    controls = tuple(f"a{chr(code)}b" for code in (*range(1, 32), 127, 0x80, 0x85, 0x9F))
    invisible = tuple(
        f"a{sign}b"
        for sign in "\u00ad\u200b\u200d\u200e\u202e\u2028\u2029\u2066\ufeff\ue000\uffff\ud800"
    )
    edges = ("\0", "a\0", "\x1fa", "a\x7f", "..\n/", "\x1c", "\x85")
    long = ("x" * 256, "\u00e9" * 128, "\U0001f600" * 64, "x" * 4096)
    for name in (*paths, *manifests, *controls, *invisible, *edges, *long):
        yield _one(f"name of {len(name)}: {name!r:.60}", name, refusal=INVALID)
    for name in ("", " ", "\t\n", "\u00a0\u3000", "\ufeff"):
        yield _one(f"name {name!r}", name, refusal=f"{INVALID}empty)")


def _stored_names() -> Iterator[HostileRequest]:
    for name in (
        "CON", "nul.txt", "COM1", "LPT9.log", "aux.", "a:stream", "a.", "...", ". .", "-rf",
        "--help", "$(reboot)", "`reboot`", "${HOME}", "%2e%2e%2fup", "..%2fup", "%00", "~root",
        "a;b|c&d", "a'b\"c", "*", "?", "<a>", "\u2024\u2024", "\uff0e\uff0e", "a\u2215b",
        "a\u2044b", "a\uff0fb", "a\uff3cb", ".\uff4danifest.json", "\u0430\u0435.txt", ".hidden",
        "manifest.json", ".manifest.json.", ".manifest.json~", ".openclaw",
        "x" * 255, "\u00e9" * 127, "e\u0301", "\u1100\u1161", "\U0001f600.png", "stdin", "0",
    ):  # fmt: skip
        yield _one(f"stored {name!r:.60}", name, names=(name,))
    yield _one("stored under its name without white space", "\t a b\u00a0\n", names=("a b",))


def _pairs() -> Iterator[HostileRequest]:
    same = {
        "the same": ("a", "a"),
        "white space": ("a", " a\n"),
        "case": ("README", "readme"),
        "normal forms": ("caf\u00e9", "cafe\u0301"),
        "case and normal forms": ("CAF\u00c9", "cafe\u0301"),
        "sharp s": ("stra\u00dfe", "STRASSE"),
        "kelvin": ("\u212a", "k"),
        "long s": ("\u017f", "S"),
        "sigmas": ("\u03c3", "\u03c2"),
        "ligature": ("\ufb01le", "FILE"),
        "angstrom": ("\u212b", "\u00e5"),
        "iota below": ("\u1fb3", "\u03b1\u0345"),
        "marks in another order": ("a\u0323\u0301", "a\u0301\u0323"),
        "iota below in another order": ("\u03b1\u0345\u0301", "\u03b1\u0301\u0345"),
    }
    for title, (first, second) in same.items():
        yield HostileRequest(
            f"twice: {title}",
            (RequestedAttachment(first, "1"), RequestedAttachment(second, "2")),
            refusal=DUPLICATE,
        )
    alike = ("a", "\u0430", "\uff41", "\u0251", "\u1d43")
    yield HostileRequest(
        "letters that look alike",
        tuple(RequestedAttachment(name, name) for name in alike),
        names=alike,
    )
    yield HostileRequest(
        "a good file and one that leads out",
        (RequestedAttachment("a", "1"), RequestedAttachment("../b", "2")),
        refusal=INVALID,
    )


def _contents() -> Iterator[HostileRequest]:
    wrong = (
        "", "   ", "!@#$", "YQ", "YQ=", "YQ===", "YQ==YQ==", "Y=Q=", "=YQ=", "====", "A", "AAAAA",
        "YWJj-_==", "YQ\u00a0==", "YQ==\0", "YQ==;", "data:;base64,YQ==", "\u0430QQ=", "\uff21AAA",
        "QUFB\u2028", "%59%51==", "YQ\u200b==", "\ud800AAA",
    )  # fmt: skip
    for text in wrong:
        yield _one(f"base64 {text!r}", "a", text, encoding="base64", refusal=NOT_BASE64)
    for text in ("YQ==", " Y Q = = ", "\nY\tQ\r\n=\v=\f", "YR==", "YWJj"):
        yield _one(f"base64 {text!r}", "a", text, encoding="base64", names=("a",))
    yield _one("text with NUL", "a", "\0\x1b[2J\r\n", names=("a",))
    yield _one("text of nothing", "a", "", names=("a",))
    yield _one("half of a pair", "a", "\udc00", refusal="attachments_invalid_utf8 (a)")


def _sizes() -> Iterator[HostileRequest]:
    most = LIMITS.max_file_bytes
    for size in (most - 1, most, most + 1):
        is_over = size > most
        yield _one(
            f"text of {size} bytes",
            "a",
            "x" * size,
            refusal=f"attachments_file_bytes_exceeded (name=a bytes={size} " if is_over else None,
            names=("a",),
        )
        yield _one(
            f"base64 of {size} bytes",
            "a",
            base64.b64encode(bytes(size)).decode(),
            encoding="base64",
            refusal=NOT_BASE64 if is_over else None,
            names=("a",),
        )
    yield _one("two bytes a sign", "a", "\u00e9" * 513, refusal="attachments_file_bytes_exceeded")
    for count in (LIMITS.max_files - 1, LIMITS.max_files, LIMITS.max_files + 1):
        files = tuple(RequestedAttachment(f"{number}.txt", "x") for number in range(count))
        is_over = count > LIMITS.max_files
        yield HostileRequest(
            f"{count} files",
            files,
            refusal="attachments_file_count_exceeded (maxFiles=50)" if is_over else None,
            names=tuple(file.name for file in files),
        )
    for total in (LIMITS.max_total_bytes - 1, LIMITS.max_total_bytes, LIMITS.max_total_bytes + 1):
        sizes = [1000, 1000, 1000, 1000, total - 4000]
        files = tuple(RequestedAttachment(str(at), "x" * size) for at, size in enumerate(sizes))
        is_over = total > LIMITS.max_total_bytes
        yield HostileRequest(
            f"{total} bytes in all",
            files,
            refusal=f"attachments_total_bytes_exceeded (totalBytes={total} " if is_over else None,
            names=tuple(file.name for file in files),
        )


def _one(
    title: str,
    name: str,
    content: str = "x",
    *,
    encoding: str | None = None,
    refusal: str | None = None,
    names: tuple[str, ...] = (),
) -> HostileRequest:
    requested_attachment = RequestedAttachment(name, content, encoding)
    return HostileRequest(title, (requested_attachment,), refusal, () if refusal else names)


Planting = Callable[[Path, Path], None]


"""Plants an entry in a workspace, before or while files are written there, that leads elsewhere or
is in the way.
"""


def _instead(*way: str) -> Callable[[Callable[[Path, Path], None]], Planting]:
    def planting(put: Callable[[Path, Path], None]) -> Planting:
        def plant(workspace: Path, outside: Path) -> None:
            place = workspace.joinpath(*way)
            place.parent.mkdir(parents=True, exist_ok=True)
            put(place, outside)

        return plant

    return planting


_KINDS: Mapping[str, Callable[[Path, Path], None]] = {
    "a link outside": lambda place, outside: place.symlink_to(outside),
    "a link nowhere": lambda place, outside: place.symlink_to(outside / "missing"),
    "a link to itself": lambda place, outside: place.symlink_to(place.name),
    "a link upwards": lambda place, outside: place.symlink_to(".."),
    "a file": lambda place, outside: place.touch(),
    "a pipe": lambda place, outside: os.mkfifo(place),
}
PLANTED: Mapping[str, Planting] = {
    f"{kind} as {'/'.join(way)}": _instead(*way)(put)
    for way in ((".openclaw",), (".openclaw", "attachments"))
    for kind, put in _KINDS.items()
}


"""Entries that can exist in advance, when the id of the run is unknown."""


def are_one_to_a_file_system(first: str, second: str) -> bool:
    """Return True if two names differ only in case or normal form."""
    left, right = (unicodedata.normalize("NFC", name).casefold() for name in (first, second))
    return unicodedata.normalize("NFC", left) == unicodedata.normalize("NFC", right)
