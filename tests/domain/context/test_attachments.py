"""The files that a spawn attaches."""

import hashlib
import json
import tracemalloc
import unicodedata
from typing import Any, Literal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.configuration.configuration import Configuration
from domain.configuration.tools import Attachments
from domain.context.attachment_manifest import (
    FilesMismatchError,
    file_list,
    manifest_text,
    parse_file_list,
    relative_dir,
    render_file_list,
    restore_files,
)
from domain.context.attachments import (
    AcceptedFiles,
    AttachmentRefusal,
    RequestedAttachment,
    accept_file,
    check_attachments,
    fold_name,
    mount_path_hint,
    trim_name,
    write_failed_refusal,
)
from domain.values.text import replace_unstorable
from tests.support.builders.explained_spawns import ADMITTED, plan_facts, the
from tests.support.builders.run_histories import created, refused, resolved, step_begun, step_taken
from tests.support.builders.storytelling import ref, requested
from tests.support.faults.hostile_attachments import (
    LIMITS,
    HostileRequest,
    are_one_to_a_file_system,
    hostile_requests,
)

# Attachments are checked in a fixed order, with the messages of the specification.

ENABLED = Attachments(enabled=True)


def file(name: str = "a", content: str = "x", encoding: str | None = None) -> RequestedAttachment:
    return RequestedAttachment(name, content, encoding)


def refusal(
    requested_attachments: list[RequestedAttachment], limits: Attachments = ENABLED
) -> tuple[str, str]:
    verdict = check_attachments(requested_attachments, limits)
    assert isinstance(verdict, AttachmentRefusal)
    return verdict.status, verdict.text


def accepted(
    requested_attachments: list[RequestedAttachment], limits: Attachments = ENABLED
) -> AcceptedFiles:
    verdict = check_attachments(requested_attachments, limits)
    assert isinstance(verdict, AcceptedFiles), verdict
    return verdict


def test_default_limits_of_attachments_are_documented() -> None:
    most = 1_048_576
    full = [file(str(number), "x" * most) for number in range(5)]
    assert accepted(full).total_bytes == 5_242_880
    assert refusal([*full, file("more", "x")]) == (
        "error",
        "attachments_total_bytes_exceeded (totalBytes=5242881 maxTotalBytes=5242880)",
    )
    assert refusal([file("big.txt", "x" * (most + 1))]) == (
        "error",
        "attachments_file_bytes_exceeded (name=big.txt bytes=1048577 maxFileBytes=1048576)",
    )
    assert accepted([file(str(number)) for number in range(50)]).count == 50
    assert refusal([file(str(number)) for number in range(51)]) == (
        "error",
        "attachments_file_count_exceeded (maxFiles=50)",
    )


def test_name_is_told_on_one_line_and_cut() -> None:
    result = refusal([file("é/\u0301" + "x" * 240)])[1]
    assert result == f"attachments_invalid_name (é/\u0301{'x' * 196}…)"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a\r\n\u202eb", r"a\u000d\u000a\u202eb"),
        ("a\x1b[2Jb", r"a\u001b[2Jb"),
        ("a\u2028\u200bb", r"a\u2028\u200bb"),
        ("\U000e0041\ue000\ud800", r"\U000e0041\ue000\ud800"),
        ("a\u00adb", r"a\u00adb"),
    ],
)
def test_invisible_sign_is_shown_by_its_number(name: str, shown: str) -> None:
    assert refusal([file(name)])[1] == f"attachments_invalid_name ({shown})"


def test_too_long_name_is_shown_with_its_length() -> None:
    for name, size in (("x" * 256, 256), ("\u00e9" * 200, 400)):
        text = refusal([file(name)])[1]
        assert text.startswith(f"attachments_invalid_name ({name[:190]}")
        assert text.endswith(f"; {size} bytes of UTF-8, at most 255 allowed)")


def test_accepted_file_has_hash_and_printable_type() -> None:
    requested_attachment = RequestedAttachment(" a.txt ", "\u00e9", mime_type=" text/plain ")
    (judged,) = accepted([requested_attachment]).files
    assert (judged.name, judged.content) == ("a.txt", b"\xc3\xa9")
    assert judged.sha256 == hashlib.sha256(b"\xc3\xa9").hexdigest()
    assert judged.mime_type == "text/plain"
    for unfit in ("", "  ", "a\nb", "\u00e9", "x" * 256):
        (judged,) = accepted([RequestedAttachment("a", "x", mime_type=unfit)]).files
        assert judged.mime_type is None


def test_representation_shows_no_content() -> None:
    request = file("a", "canary")
    assert "canary" not in f"{request!r}{accepted([request])!r}"


@pytest.mark.parametrize("request_", hostile_requests(), ids=str)
def test_hostile_request_is_refused_or_made_harmless(request_: HostileRequest) -> None:
    verdict = check_attachments(request_.asked, LIMITS)
    if request_.refusal is None:
        assert isinstance(verdict, AcceptedFiles), verdict
        assert tuple(file.name for file in verdict.files) == request_.names
    else:
        assert isinstance(verdict, AttachmentRefusal)
        assert verdict.status == "error"
        assert verdict.text.startswith(request_.refusal)
        assert verdict.text.encode() == replace_unstorable(verdict.text).encode()
        assert len(verdict.text.splitlines()) == 1


def test_write_failure_is_one_line() -> None:
    assert write_failed_refusal("Permission\n denied") == AttachmentRefusal(
        "error", "attachments_materialization_failed (Permission  denied)"
    )


@pytest.mark.parametrize("hint", ["/mnt/in", "in", "C:/in", "a.b_c-d:e/..", "x" * 255])
def test_mount_path_of_plain_letters_is_a_hint(hint: str) -> None:
    assert mount_path_hint(f" {hint}\n") == hint


@pytest.mark.parametrize("text", [None, "", " ", "a b", "a\nb", "$HOME", "\u00e9", "x" * 256])
def test_any_other_mount_path_is_none(text: str | None) -> None:
    assert mount_path_hint(text) is None


@given(
    st.lists(st.tuples(st.text(max_size=4), st.text(max_size=6), st.booleans()), max_size=6),
    st.integers(0, 6),
    st.integers(0, 8),
    st.integers(0, 16),
)
def test_what_is_accepted_is_within_every_limit(
    given_: list[tuple[str, str, bool]], files: int, size: int, total: int
) -> None:
    limits = Attachments(enabled=True, max_files=files, max_file_bytes=size, max_total_bytes=total)
    request = [file(name, text, "base64" if coded else None) for name, text, coded in given_]
    verdict = check_attachments(request, limits)
    if isinstance(verdict, AttachmentRefusal):
        assert verdict.text
        return
    assert verdict.count == len(request) <= files
    assert all(len(file.content) <= size for file in verdict.files)
    assert verdict.total_bytes == sum(len(file.content) for file in verdict.files)
    assert not request or verdict.total_bytes <= total


@pytest.mark.parametrize("sign", ["x", "ä", "😀"])
def test_huge_text_is_counted_without_a_copy(sign: str) -> None:
    large = sign * 8_000_000
    text = (
        f"attachments_file_bytes_exceeded (name=a bytes={len(large.encode())} maxFileBytes=1048576)"
    )
    tracemalloc.start()
    try:
        assert refusal([file(content=large)]) == ("error", text)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


# Names of attached files.

TRICKY = st.sampled_from(
    list("./\\ab AB\0\n\t\x7f\x85\u00a0\u200b\u202e\ufeff\u2028e\u0301\u00e9\u00c9ß\u017f\u0345")
)
NAMES = st.text(TRICKY | st.characters(), max_size=6) | st.sampled_from(
    ["..", ".manifest.json", ".Manifest.JSON", "x" * 256]
)
FORMS: tuple[Literal["NFC", "NFD"], ...] = ("NFC", "NFD")


@given(st.lists(NAMES, min_size=1, max_size=4))
def test_accepted_names_are_distinct_on_any_file_system(
    names: list[str],
) -> None:
    verdict = check_attachments(
        [RequestedAttachment(name, "") for name in names], Attachments(enabled=True)
    )
    if not isinstance(verdict, AcceptedFiles):
        return
    stored = [file.name for file in verdict.files]
    for name in stored:
        assert name
        assert not set(name) & set("/\\\0")
        assert not any(ord(sign) < 32 or 127 <= ord(sign) < 160 for sign in name)
        assert not any(unicodedata.category(sign)[0] == "C" for sign in name)
        assert name.casefold() not in (".", "..", ".manifest.json")
        assert 0 < len(name.encode()) <= 255
        assert name == name.strip()
    pairs = [(first, second) for at, first in enumerate(stored) for second in stored[:at]]
    assert not any(are_one_to_a_file_system(first, second) for first, second in pairs)


@given(st.text(TRICKY | st.characters(), max_size=8), st.sampled_from(FORMS))
def test_name_in_another_normal_form_is_folded_alike(
    name: str, form: Literal["NFC", "NFD"]
) -> None:
    assert fold_name(unicodedata.normalize(form, name)) == fold_name(name)


@given(st.text(st.characters(codec="ascii"), max_size=8))
def test_letter_case_makes_no_other_name(name: str) -> None:
    assert fold_name(name.upper()) == fold_name(name.lower()) == fold_name(name)


def test_white_space_is_trimmed_as_agents_trim_it() -> None:
    assert trim_name("\ufeff \u2029a b\u3000\n") == "a b"
    assert trim_name("\x1ca\x85") == "\x1ca\x85"  # which `str.strip` would make "a"


# Stored metadata of attached files.

RUN = UUID("6f0c1c1e-3d0e-4c52-9d4e-0f6a4d4b7c11")
FOLDER = ".openclaw/attachments/6f0c1c1e-3d0e-4c52-9d4e-0f6a4d4b7c11"
FILES = AcceptedFiles((accept_file("é.txt", b"abc", "text/plain"), accept_file('"', b"")))
ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_run_has_a_folder_of_its_own() -> None:
    assert relative_dir(RUN) == FOLDER


def test_manifest_is_indented_json() -> None:
    assert manifest_text(FOLDER, FILES.files) == (
        "{\n"
        f'  "relDir": "{FOLDER}",\n'
        '  "count": 2,\n'
        '  "totalBytes": 3,\n'
        '  "files": [\n'
        "    {\n"
        '      "name": "é.txt",\n'
        '      "bytes": 3,\n'
        f'      "sha256": "{ABC}"\n'
        "    },\n"
        "    {\n"
        '      "name": "\\"",\n'
        '      "bytes": 0,\n'
        f'      "sha256": "{EMPTY}"\n'
        "    }\n"
        "  ]\n"
        "}\n"
    )


def test_file_list_is_stored_without_content() -> None:
    text = render_file_list(file_list(FILES))
    assert json.loads(text) == {
        "files": [
            {"name": "é.txt", "bytes": 3, "sha256": ABC, "mimeType": "text/plain"},
            {"name": '"', "bytes": 0, "sha256": EMPTY},
        ]
    }
    assert parse_file_list(text) == file_list(FILES)
    assert restore_files(parse_file_list(text), [b"abc", b""]) == FILES


@pytest.mark.parametrize("bodies", [[], [b"abc"], [b"abd", b""], [b"", b"abc"], [b"abc", b"", b""]])
def test_changed_bytes_are_refused(bodies: list[bytes]) -> None:
    with pytest.raises(FilesMismatchError):
        restore_files(file_list(FILES), bodies)


@pytest.mark.parametrize("text", ["", "[]", '{"files": [{}]}', '{"files": [], "more": 1}'])
def test_text_that_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(FilesMismatchError, match="is unreadable"):
        parse_file_list(text)


# Explanation of attachments, from the facts recorded with the request.

EXPLAINED_LIMITS = ("maxFiles", "maxFileBytes", "maxTotalBytes")
ATTACHED: list[tuple[dict[str, Any] | None, bool, int | None, str]] = [
    (None, False, 0, "no files are attached"),
    ({"count": 2, "total_bytes": 17}, False, 17, "2 file(s) with 17 bytes in total are attached"),
    (
        {"count": 51, "refusal": ref("why"), "refusal_status": "error"},
        True,
        None,
        "51 file(s) are attached, but not all are accepted",
    ),
    (
        {"count": 1, "total_bytes": 3, "manifest": ref("manifest")},
        True,
        3,
        "1 file(s) with 3 bytes in total are attached, but could not be written",
    ),
]


@pytest.mark.parametrize(("attached", "refuses", "total", "text"), ATTACHED)
def test_attachments_are_counted_and_measured(
    attached: dict[str, Any] | None, refuses: bool, total: int | None, text: str
) -> None:
    event = (
        refused(rule="attachments", step="attachments", facts=plan_facts())
        if refuses
        else created(facts=plan_facts())
    )
    explanation = the("attachments", requested(attachments=attached), ADMITTED, resolved(), event)
    assert (explanation.result, explanation.text) == ("refused" if refuses else "passed", text)
    assert explanation.compared == {
        "count": attached["count"] if attached else 0,
        "totalBytes": total,
        **dict.fromkeys(EXPLAINED_LIMITS),
        "written": False,
    }


def test_attachments_are_explained_with_their_limits() -> None:
    limits = {"maxFiles": 3, "maxFileBytes": 40, "maxTotalBytes": 50}
    configuration = Configuration.model_validate(
        {"tools": {"sessions_spawn": {"attachments": {"enabled": True, **limits}}}}
    )
    written = step_taken("attachments", outcome="written")
    request = requested(attachments={"count": 2, "total_bytes": 17, "manifest": ref("manifest")})
    events = request, ADMITTED, resolved(), step_begun(), written, created(facts=plan_facts())
    explanation = the("attachments", *events, configuration=configuration)
    assert explanation.compared == {"count": 2, "totalBytes": 17, **limits, "written": True}
    assert (explanation.result, explanation.position) == ("passed", 14)
