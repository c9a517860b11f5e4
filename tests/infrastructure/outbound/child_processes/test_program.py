"""What no program can be given is refused before anything is started."""

import pytest

from infrastructure.outbound.child_processes.program import Program
from infrastructure.outbound.child_processes.protocol import (
    LENGTH_BYTES,
    decode_report,
    decode_spec,
    encode_report,
    encode_spec,
)


@pytest.mark.parametrize(
    ("argv", "env", "cwd", "said"),
    [
        ((), {}, None, "needs a command"),
        (("",), {}, None, "needs a command"),
        (("a", "b\0c"), {}, None, r"argv\[1\] holds a NUL"),
        (("a", "\ud800"), {}, None, r"argv\[1\] holds characters"),
        (("a",), {"": "x"}, None, "name of an environment variable is empty"),
        (("a",), {"B=C": "x"}, None, "contains '='"),
        (("a",), {"B": "secret\0"}, None, "environment variable 'B' holds a NUL"),
        (("a",), {}, "", "working directory is an empty string"),
        (("a",), {}, "/\0", "working directory holds a NUL"),
        (("a", "x" * 9_000_000), {}, None, "at most 8388608 are allowed"),
    ],
)
def test_what_cannot_be_handed_over_is_refused_by_its_place(
    argv: tuple[str, ...], env: dict[str, str], cwd: str | None, said: str
) -> None:
    with pytest.raises(ValueError, match=said) as refused:
        Program(argv, env, cwd, None)
    assert "secret" not in str(refused.value)


def test_a_spec_comes_back_as_it_was() -> None:
    encoded = encode_spec(("a", "", "b c"), {"X": "1=2", "Y": ""}, "/tmp")
    assert int.from_bytes(encoded[:LENGTH_BYTES], "big") == len(encoded) - LENGTH_BYTES
    spec = decode_spec(encoded[LENGTH_BYTES:])
    assert (spec.argv, spec.cwd) == ([b"a", b"", b"b c"], b"/tmp")
    assert spec.env == {b"X": b"1=2", b"Y": b""}
    assert spec.silence_seconds_max is None
    limited = encode_spec(("a", ""), {}, None, 2.5)
    assert decode_spec(limited[LENGTH_BYTES:]).silence_seconds_max == 2.5
    bare = decode_spec(encode_spec(("a",), {}, None)[LENGTH_BYTES:])
    assert (bare.argv, bare.env, bare.cwd) == ([b"a"], {}, b"")


def test_a_report_is_one_line_whatever_its_text() -> None:
    line = encode_report("error", "one\ntwo\r\nthree \udcff")
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert decode_report(line[:-1]) == ("error", "one two three \\udcff")
