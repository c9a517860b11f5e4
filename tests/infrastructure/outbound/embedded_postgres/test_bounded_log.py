"""The log of the embedded server stays small."""

import io
from pathlib import Path

from infrastructure.outbound.embedded_postgres.process import BoundedLog


def test_the_log_keeps_the_newest_lines_and_never_outgrows_twice_its_limit(tmp_path: Path) -> None:
    log = BoundedLog(tmp_path / "server.log", bytes_max=1000)
    lines = [f"line {number:04}\n" for number in range(950)]
    followed = log.follow(io.BytesIO("".join(lines).encode()))
    assert followed.output().splitlines()[-1] == "line 0949"
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["server.log", "server.log.1"]
    assert all(file.stat().st_size <= 1010 for file in files)
    newest = files[1].read_text() + files[0].read_text()
    assert newest == "".join(lines)[-len(newest) :]


def test_a_log_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    log = BoundedLog(tmp_path / "missing" / "server.log")
    followed = log.follow(io.BytesIO(b"FATAL: a reason\n"))
    assert followed.output() == "FATAL: a reason\n"
