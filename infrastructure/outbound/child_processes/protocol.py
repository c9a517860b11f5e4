"""What holder and guard say to each other.

Holder to guard, on the liveness pipe: the spec of the program (eight bytes of length, then the
fields separated by NUL), later one go byte, and heartbeats now and then behind the spec. The end
of the liveness pipe means: end everything. So does its silence, for as long as the spec says.
Guard process to holder, on the status pipe: lines of a word and a text, the first of them `ready`.
"""

import os
from collections.abc import Mapping

LENGTH_BYTES = 8
GO = b"G"
HEARTBEAT = b"."
READY = "ready"
CODE = "code"
SIGNAL = "signal"
KILLED = "killed"
ERROR = "error"


class Spec:
    """What the guard is to execute, as bytes of the operating system, and how many seconds of
    silence of its holder it bears (None: any)."""

    def __init__(
        self,
        argv: list[bytes],
        env: dict[bytes, bytes],
        cwd: bytes,
        silence_seconds_max: float | None,
    ) -> None:
        self.argv = argv
        self.env = env
        self.cwd = cwd
        self.silence_seconds_max = silence_seconds_max


def encode_spec(
    argv: tuple[str, ...],
    env: Mapping[str, str],
    cwd: str | None,
    silence_seconds_max: float | None = None,
) -> bytes:
    """Length and fields; encoded here, because the guard may run under another locale."""
    silence = "" if silence_seconds_max is None else repr(silence_seconds_max)
    fields = [silence.encode(), b"%d" % len(argv), *map(os.fsencode, argv), os.fsencode(cwd or "")]
    fields += [os.fsencode(name) + b"=" + os.fsencode(value) for name, value in env.items()]
    payload = b"\0".join(fields)
    return len(payload).to_bytes(LENGTH_BYTES, "big") + payload


def decode_spec(payload: bytes) -> Spec:
    """The reverse, without the length."""
    silence, count, *fields = payload.split(b"\0")
    last = int(count)
    env: dict[bytes, bytes] = {}
    for field in fields[last + 1 :]:
        name, _, value = field.partition(b"=")
        env[name] = value
    return Spec(
        argv=fields[:last],
        env=env,
        cwd=fields[last],
        silence_seconds_max=float(silence) if silence else None,
    )


def encode_report(word: str, text: str) -> bytes:
    """One line; a line break in the text becomes a space."""
    line = " ".join(f"{word} {text}".splitlines())
    return line.encode(errors="backslashreplace") + b"\n"


def decode_report(line: bytes) -> tuple[str, str]:
    """The word and the text of one line."""
    word, _, text = line.decode(errors="replace").partition(" ")
    return word, text
