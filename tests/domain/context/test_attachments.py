"""What a spawn attaches is judged in one order, in the words of the specification."""

import hashlib
import tracemalloc
from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.configuration.tools import Attachments
from domain.context.attachments import (
    AcceptedFiles,
    AttachmentRefusal,
    RequestedAttachment,
    check_attachments,
    mount_path_hint,
    write_failed_refusal,
)
from domain.values.text import replace_unstorable
from tests.support.faults.hostile_attachments import LIMITS, HostileRequest, hostile_requests

ENABLED = Attachments(enabled=True)


def file(name: str = "a", content: str = "x", encoding: str | None = None) -> RequestedAttachment:
    return RequestedAttachment(name, content, encoding)


def refusal(asked: list[RequestedAttachment], limits: Attachments = ENABLED) -> tuple[str, str]:
    verdict = check_attachments(asked, limits)
    assert isinstance(verdict, AttachmentRefusal)
    return verdict.status, verdict.text


def accepted(asked: list[RequestedAttachment], limits: Attachments = ENABLED) -> AcceptedFiles:
    verdict = check_attachments(asked, limits)
    assert isinstance(verdict, AcceptedFiles), verdict
    return verdict


def test_nothing_attached_is_nothing_to_judge() -> None:
    assert check_attachments((), Attachments()) == check_attachments((), ENABLED) == AcceptedFiles()


def test_attachments_are_off_unless_they_are_enabled() -> None:
    assert refusal([file("..", "")], Attachments(max_files=0)) == (
        "forbidden",
        "attachments are disabled for sessions_spawn "
        "(enable tools.sessions_spawn.attachments.enabled)",
    )


def test_the_limits_that_are_not_configured_are_the_documented_ones() -> None:
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


@pytest.mark.parametrize("most", [0, 1, 2, 3, 4, 100])
def test_each_limit_holds_at_the_last_one_and_not_one_later(most: int) -> None:
    def count(number: int) -> list[RequestedAttachment]:
        return [file(str(at)) for at in range(number)]

    for number in (most - 1, most, most + 1):
        if number < 0:
            continue
        files = Attachments(enabled=True, max_files=most)
        sizes = Attachments(enabled=True, max_file_bytes=most)
        totals = Attachments(enabled=True, max_files=101, max_total_bytes=most)
        encoded = file("a", b64encode(bytes(number)).decode(), "base64")
        if number <= most:
            assert accepted(count(number), files).count == number
            assert accepted([file("a", "x" * number)], sizes).total_bytes == number
            assert accepted(count(number), totals).total_bytes == number
            if number:
                assert accepted([encoded], sizes).files[0].content == bytes(number)
        else:
            assert refusal(count(number), files)[1] == (
                f"attachments_file_count_exceeded (maxFiles={most})"
            )
            assert refusal([file("a", "x" * number)], sizes)[1] == (
                f"attachments_file_bytes_exceeded (name=a bytes={number} maxFileBytes={most})"
            )
            assert refusal([encoded], sizes)[1] == "attachments_invalid_base64_or_too_large"
            assert refusal(count(number), totals)[1] == (
                f"attachments_total_bytes_exceeded (totalBytes={number} maxTotalBytes={most})"
            )


def test_the_first_rule_that_fails_speaks_and_the_first_file() -> None:
    limits = Attachments(enabled=True, max_files=2, max_file_bytes=3, max_total_bytes=4)
    bad, big, wrong = file(".."), file("big", "xxxx"), file("w", "!", "base64")
    assert refusal([bad, big, wrong], limits)[1].startswith("attachments_file_count_exceeded")
    assert refusal([bad, big], limits)[1] == "attachments_invalid_name (..)"
    assert refusal([big, bad], limits)[1].startswith("attachments_file_bytes_exceeded (name=big")
    assert refusal([file("w"), wrong], limits)[1] == "attachments_duplicate_name (w)"
    assert refusal([wrong, file("w")], limits)[1] == "attachments_invalid_base64_or_too_large"
    assert refusal([file("a", "xxx"), file("b", "xxxx")], limits)[1].startswith(
        "attachments_file_bytes_exceeded (name=b"
    )
    assert refusal([file("a", "xxx"), file("b", "xx")], limits)[1].startswith(
        "attachments_total_bytes_exceeded (totalBytes=5 "
    )


def test_a_name_is_told_on_one_line_and_cut() -> None:
    told = refusal([file("é/\u0301" + "x" * 240)])[1]
    assert told == f"attachments_invalid_name (é/\u0301{'x' * 196}…)"


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
def test_a_sign_that_is_not_seen_is_told_by_its_number(name: str, shown: str) -> None:
    assert refusal([file(name)])[1] == f"attachments_invalid_name ({shown})"


def test_a_name_that_is_too_long_is_told_with_its_length() -> None:
    for name, size in (("x" * 256, 256), ("\u00e9" * 200, 400)):
        told = refusal([file(name)])[1]
        assert told.startswith(f"attachments_invalid_name ({name[:190]}")
        assert told.endswith(f"; {size} bytes of UTF-8, and 255 are the most)")


def test_only_the_very_word_makes_base64() -> None:
    for encoding in (None, "utf8", "BASE64", "base64 ", ""):
        assert accepted([file("a", "YQ==", encoding)]).files[0].content == b"YQ=="
    assert accepted([file("a", "YQ==", "base64")]).files[0].content == b"a"


def test_a_judged_file_has_the_hash_of_its_content_and_a_type_that_can_be_shown() -> None:
    asked = RequestedAttachment(" a.txt ", "\u00e9", mime_type=" text/plain ")
    (judged,) = accepted([asked]).files
    assert (judged.name, judged.content) == ("a.txt", b"\xc3\xa9")
    assert judged.sha256 == hashlib.sha256(b"\xc3\xa9").hexdigest()
    assert judged.mime_type == "text/plain"
    for unfit in ("", "  ", "a\nb", "\u00e9", "x" * 256):
        (judged,) = accepted([RequestedAttachment("a", "x", mime_type=unfit)]).files
        assert judged.mime_type is None


def test_a_content_is_in_no_text_of_a_value() -> None:
    asked = file("a", "canary")
    assert "canary" not in f"{asked!r}{accepted([asked])!r}"


@pytest.mark.parametrize("request_", hostile_requests(), ids=str)
def test_a_hostile_request_is_refused_or_made_harmless(request_: HostileRequest) -> None:
    verdict = check_attachments(request_.asked, LIMITS)
    if request_.refusal is None:
        assert isinstance(verdict, AcceptedFiles), verdict
        assert tuple(one.name for one in verdict.files) == request_.names
    else:
        assert isinstance(verdict, AttachmentRefusal)
        assert verdict.status == "error"
        assert verdict.text.startswith(request_.refusal)
        assert verdict.text.encode() == replace_unstorable(verdict.text).encode()
        assert len(verdict.text.splitlines()) == 1


def test_the_hostile_requests_are_told_apart() -> None:
    titles = [str(one) for one in hostile_requests()]
    assert len(titles) == len(set(titles)) > 150


def test_a_reason_for_not_writing_is_told_on_one_line() -> None:
    assert write_failed_refusal("Permission\n denied") == AttachmentRefusal(
        "error", "attachments_materialization_failed (Permission  denied)"
    )


@pytest.mark.parametrize("hint", ["/mnt/in", "in", "C:/in", "a.b_c-d:e/..", "x" * 255])
def test_a_mount_path_of_plain_letters_is_a_hint(hint: str) -> None:
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
    asked = [file(name, text, "base64" if coded else None) for name, text, coded in given_]
    verdict = check_attachments(asked, limits)
    if isinstance(verdict, AttachmentRefusal):
        assert verdict.text
        return
    assert verdict.count == len(asked) <= files
    assert all(len(one.content) <= size for one in verdict.files)
    assert verdict.total_bytes == sum(len(one.content) for one in verdict.files)
    assert not asked or verdict.total_bytes <= total


@pytest.mark.parametrize("sign", ["x", "ä", "😀"])
def test_a_text_that_is_far_too_large_is_counted_without_a_copy(sign: str) -> None:
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


def test_a_text_that_is_far_too_large_and_no_text_is_told_as_the_latter() -> None:
    text = "attachments_invalid_utf8 (a)"
    assert refusal([file(content="x" * 2_000_000 + "\ud800")]) == ("error", text)
