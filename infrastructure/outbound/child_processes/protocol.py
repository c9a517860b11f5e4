"""Wire format between the server and a guard process.

Server to guard, on the liveness pipe: the spec of the program (length in eight bytes, then fields
separated by NUL), one go byte, and heartbeats after the spec. The guard kills the program when the
pipe closes, or when it is silent for longer than the spec permits.

Guard to server, on the status pipe: lines of a word and a text. The first word is `ready`.
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


class ProgramSpec:
    """The program that a guard executes, as bytes of the operating system.

    Attributes:
        argv: Command and arguments.
        env: The whole environment.
        cwd: Working directory; empty for the current one.
        silence_seconds_max: Maximum seconds without a heartbeat; None for no limit.
    """

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
    """Return the spec with its length in front.

    The server encodes it, because the guard may run under another locale.
    """
    silence = "" if silence_seconds_max is None else repr(silence_seconds_max)
    fields = [silence.encode(), b"%d" % len(argv), *map(os.fsencode, argv), os.fsencode(cwd or "")]
    fields += [os.fsencode(name) + b"=" + os.fsencode(value) for name, value in env.items()]
    payload = b"\0".join(fields)
    return len(payload).to_bytes(LENGTH_BYTES, "big") + payload


def decode_spec(payload: bytes) -> ProgramSpec:
    """Parse a spec without its length."""
    silence, count, *fields = payload.split(b"\0")
    last = int(count)
    env: dict[bytes, bytes] = {}
    for field in fields[last + 1 :]:
        name, _, value = field.partition(b"=")
        env[name] = value
    return ProgramSpec(
        argv=fields[:last],
        env=env,
        cwd=fields[last],
        silence_seconds_max=float(silence) if silence else None,
    )


def encode_report(word: str, text: str) -> bytes:
    """Return one status line. A line break in the text becomes a space."""
    line = " ".join(f"{word} {text}".splitlines())
    return line.encode(errors="backslashreplace") + b"\n"


def decode_report(line: bytes) -> tuple[str, str]:
    """Return the word and the text of one status line."""
    word, _, text = line.decode(errors="replace").partition(" ")
    return word, text
