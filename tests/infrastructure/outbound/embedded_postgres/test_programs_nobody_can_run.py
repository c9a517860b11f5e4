"""A copy of the programs that cannot be run either is not left behind."""

import os
from pathlib import Path

import pytest

from infrastructure.outbound.embedded_postgres import install
from infrastructure.outbound.embedded_postgres.account import Account
from infrastructure.outbound.embedded_postgres.binaries import Programs
from infrastructure.outbound.embedded_postgres.data_directory import Home
from infrastructure.outbound.embedded_postgres.errors import EmbeddedPostgresError


def test_a_start_that_fails_leaves_no_copy_of_the_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "shared"
    monkeypatch.setattr(install, "_SHARED_PLACE", shared)
    programs = Programs(tmp_path / "package" / "install" / "bin", "18.4")
    programs.directory.mkdir(parents=True)
    for name in ("postgres", "initdb"):
        (programs.directory / name).write_text("no program")
    account = Account(os.geteuid(), os.getegid(), switch=False)
    with pytest.raises(EmbeddedPostgresError, match="can execute it neither in"):
        install._runnable_programs(programs, account, Home.at(tmp_path / "home"), by_path=False)
    assert not shared.exists()
