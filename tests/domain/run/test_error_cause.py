"""Equal causes have one key, whatever ids, numbers, texts and paths their errors contain."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.run.error_cause import CAUSE_CHARACTERS_MAX, NO_ERROR, error_cause, error_line
from tests.support.tiers import examples

TRACEBACK = """stderr: starting
Traceback (most recent call last):
  File "/srv/tide.py", line 12, in <module>
    main()
ValueError: not a tide

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/srv/tide.py", line 20, in <module>
    raise TimeoutError("…")
"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", ""),
        (" \n\t\n", ""),
        ("no such model", "no such model"),
        ("first\nlast   of\tall\n\n", "last of all"),
        (f"{TRACEBACK}TimeoutError: tide service\n", "TimeoutError: tide service"),
        (f"{TRACEBACK}TimeoutError: tide service\nand\nmore\n", "TimeoutError: tide service"),
        (TRACEBACK.rstrip(), 'raise TimeoutError("…")'),
        ("x" * 900, "x" * 300),
    ],
)
def test_error_line_is_the_exception_or_the_last_line(text: str, line: str) -> None:
    assert error_line(text) == line


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("", NO_ERROR),
        ("  exit  status 3 ", "exit status <n>"),
        ("timed out after 1.5 s of 30s", "timed out after <n> s of <n>s"),
        ("run 0198c0de-1111-7222-8333-444455556666 is gone", "run <id> is gone"),
        ("commit deadbee1 at 0x7f3a9: no", "commit <id> at <id>: no"),
        ("call toolu_01H8XYZ2ABC failed", "call <id> failed"),
        ("KeyError: 'harbour'", "KeyError: <text>"),
        ('no agent "x" or `y`', "no agent <text> or <text>"),
        ("it can't and won't", "it can't and won't"),
        ("cannot open /srv/data/a-1.txt: denied", "cannot open <path>: denied"),
        ("cannot open data/harbour.txt", "cannot open <path>"),
        (r"cannot open C:\data\a.txt now", "cannot open <path> now"),
        ("either and/or neither", "either and/or neither"),
        ("GET https://tide.example:8080/v1?q=3 gave 503", "GET <url> gave <n>"),
        ("at 2026-11-25T18:00:00.123Z: late", "at <time>: late"),
        ("Http404Error: gone", "Http<n>Error: gone"),
        ("5'x'", "<n>'x'"),
    ],
)
def test_cause_leaves_out_what_differs(line: str, cause: str) -> None:
    assert error_cause(line) == cause


def test_equal_causes_have_one_key() -> None:
    lines = [
        f"TimeoutError: tide service did not answer call-{number:02} in {number}.5 s"
        for number in range(21)
    ]
    assert {error_cause(line) for line in lines} == {
        "TimeoutError: tide service did not answer call-<n> in <n> s"
    }


@examples(300)
@given(
    st.lists(
        st.sampled_from(
            [
                "5",
                "'",
                '"',
                "x",
                " ",
                "/",
                "a",
                "deadbee1",
                "<n>",
                "<",
                ">",
                ".",
                "-",
                "é",
                "http://",
            ]
        ),
        max_size=260,
    ).map("".join)
)
def test_cause_of_cause_is_itself(line: str) -> None:
    cause = error_cause(line)
    assert error_cause(cause) == cause
    assert len(cause) <= CAUSE_CHARACTERS_MAX
