"""What a file that is attached may be called."""

import unicodedata
from typing import Literal

from hypothesis import given
from hypothesis import strategies as st

from domain.configuration.tools import Attachments
from domain.context.attachments import (
    AcceptedFiles,
    RequestedAttachment,
    check_attachments,
    fold_name,
    is_file_name,
    trim_name,
)
from tests.support.faults.hostile_attachments import are_one_to_a_file_system

TRICKY = st.sampled_from(
    list("./\\ab AB\0\n\t\x7f\x85\u00a0\u200b\u202e\ufeff\u2028e\u0301\u00e9\u00c9ß\u017f\u0345")
)
NAMES = st.text(TRICKY | st.characters(), max_size=6) | st.sampled_from(
    ["..", ".manifest.json", ".Manifest.JSON", "x" * 256]
)
FORMS: tuple[Literal["NFC", "NFD"], ...] = ("NFC", "NFD")


@given(st.lists(NAMES, min_size=1, max_size=4))
def test_accepted_names_are_those_of_single_files_that_no_file_system_takes_for_one(
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
    pairs = [(one, other) for at, one in enumerate(stored) for other in stored[:at]]
    assert not any(are_one_to_a_file_system(one, other) for one, other in pairs)


@given(st.text(TRICKY | st.characters(), max_size=8), st.sampled_from(FORMS))
def test_a_name_in_another_normal_form_is_folded_alike(
    name: str, form: Literal["NFC", "NFD"]
) -> None:
    assert fold_name(unicodedata.normalize(form, name)) == fold_name(name)


@given(st.text(st.characters(codec="ascii"), max_size=8))
def test_the_case_of_a_letter_makes_no_other_name(name: str) -> None:
    assert fold_name(name.upper()) == fold_name(name.lower()) == fold_name(name)


def test_white_space_is_trimmed_as_agents_trim_it() -> None:
    assert trim_name("\ufeff \u2029a b\u3000\n") == "a b"
    assert trim_name("\x1ca\x85") == "\x1ca\x85"  # which `str.strip` would make "a"


def test_a_name_may_fill_what_a_file_system_has_for_it() -> None:
    assert is_file_name("x" * 255)
    assert not is_file_name("x" * 256)
    assert is_file_name("\u00e9" * 127)
    assert not is_file_name("\u00e9" * 128)
