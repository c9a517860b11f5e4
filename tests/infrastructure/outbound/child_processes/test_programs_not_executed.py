"""Why a program could not be executed, in words that lead to what to do."""

import errno
import os
from pathlib import Path

import pytest

from infrastructure.outbound.child_processes.guard_process import why_not_executed
from infrastructure.outbound.child_processes.protocol import Spec

DENIED = PermissionError(errno.EACCES, os.strerror(errno.EACCES))
"""What `execvpe` raises if a folder of PATH may not be entered, whoever has the program."""


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("no-such-agent", "No such file or directory"),
        ("plain", "Permission denied"),
        ("{folder}/plain", "Permission denied"),
        ("{folder}/no-such-agent", "No such file or directory"),
    ],
)
def test_program_that_no_folder_has_is_missing(tmp_path: Path, name: str, why: str) -> None:
    (tmp_path / "plain").touch(mode=0o600)
    path = {b"PATH": os.fsencode(f"{tmp_path / 'closed'}:{tmp_path}")}
    spec = Spec([os.fsencode(name.format(folder=tmp_path))], path, b"", None)
    assert why_not_executed(DENIED, spec) == why


def test_working_directory_that_may_not_be_entered_is_denied() -> None:
    assert why_not_executed(DENIED, None) == "Permission denied"
    assert why_not_executed(ValueError("embedded null byte"), None) == "ValueError"
