"""Which folder a server keeps its data in, by file, variable and flag."""

import os
from pathlib import Path

import pytest

from domain.configuration.problems import ConfigurationError
from domain.configuration.settings import effective_settings
from infrastructure.contract.errors import UserError
from infrastructure.outbound.identity.data_directory import DataDirectory
from infrastructure.server.operations import data_directory_of
from tests.support.builders.configurations import load_text


def folder_of(written: str, folder: Path, **flags: object) -> Path | None:
    loaded = load_text(f"{{spawnlog: {{dataDir: '{written}'}}}}", "a.json5", folder)
    return data_directory_of(loaded, effective_settings(loaded.configuration.spawnlog, {}, flags))


def test_a_variable_in_the_file_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLACE", str(tmp_path / "elsewhere"))
    assert folder_of("${PLACE}/data", tmp_path) == tmp_path / "elsewhere" / "data"
    monkeypatch.setenv("PLACE", "inside")
    assert folder_of("${PLACE}/data", tmp_path) == tmp_path / "inside" / "data"


def test_a_variable_that_is_not_set_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PLACE", raising=False)
    with pytest.raises(ConfigurationError, match="PLACE: is not set"):
        folder_of("${PLACE}/data", tmp_path)


def test_a_variable_that_is_blank_does_not_make_the_files_folder_the_data_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLACE", " ")
    with pytest.raises(ConfigurationError, match="a path is blank"):
        folder_of("${PLACE}", tmp_path)


def test_a_flag_is_taken_as_it_is(tmp_path: Path) -> None:
    assert folder_of("data", tmp_path, data_dir="${PLACE}") == Path("${PLACE}")
    assert folder_of("data", tmp_path) == tmp_path / "data"


def test_path_that_is_no_utf8_is_refused(tmp_path: Path) -> None:
    """Paths of transcripts are recorded."""
    named = tmp_path / os.fsdecode(b"\xff")
    with pytest.raises(UserError, match="is not UTF-8; name another one with --data-dir"):
        DataDirectory.open(named)
    assert not named.exists()
