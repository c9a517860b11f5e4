"""The file of a revision, found by its path on record."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from application.configuration.activate import REVISIONS_REMEMBERED_MAX
from application.ports.configurations import PinnedConfiguration
from domain.configuration.problems import ConfigurationError
from domain.configuration.secrets import SecretReference
from infrastructure.outbound.configuration.files import LoadedFiles
from infrastructure.outbound.configuration.load import LoadedConfiguration, load, load_recorded

REFERENCE = SecretReference.model_validate({"$secret": "/agents/list/0/runtime/env/WORD"})


def write(path: Path, word: str = "s3cret", *, width: int = 3) -> LoadedConfiguration:
    """A file with a secret in it, as it is read."""
    runtime = {"type": "command", "command": ["true"], "env": {"WORD": word}}
    agents: dict[str, Any] = {
        "defaults": {"subagents": {"maxConcurrent": width}},
        "list": [{"id": "main", "runtime": runtime}],
    }
    path.write_text(json.dumps({"agents": agents}), "utf-8")
    return load(path)


def pinned(revision: int, loaded: LoadedConfiguration) -> PinnedConfiguration:
    return PinnedConfiguration(revision, loaded.configuration, loaded.stored)


def test_unchanged_file_gives_the_secrets_it_has_now(tmp_path: Path) -> None:
    kept = write(tmp_path / "a.json5")
    write(tmp_path / "a.json5", "another")
    found = load_recorded(1, kept.source, kept.stored_text)
    assert (found.missing, found.resolve(REFERENCE)) == (None, "another")


def test_relative_path_is_recorded_from_its_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "a.json5")
    monkeypatch.chdir(tmp_path)
    assert load(Path("a.json5")).source == str(tmp_path / "a.json5")
    assert load(None).source == "built-in"


def test_built_in_revision_needs_no_file() -> None:
    kept = load(None)
    found = load_recorded(1, kept.source, kept.stored_text)
    assert (found.missing, found.path, found.stored) == (None, None, kept.stored)


@pytest.mark.parametrize(
    ("fate", "said"),
    [
        ("gone", "there is no such file"),
        ("changed", "has changed since revision 1 was activated"),
        ("broken", "a.json5:1:"),
        ("pipe", "is not a regular file"),
    ],
)
def test_unusable_file_leaves_the_revision_without_secrets(
    fate: str, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.json5"
    kept = write(path)
    path.unlink()
    if fate == "changed":
        write(path, width=4)
    elif fate == "broken":
        path.write_text("{")
    elif fate == "pipe":
        os.mkfifo(path)
    found = load_recorded(1, kept.source, kept.stored_text)
    assert found.missing is not None
    assert said in found.missing
    assert str(path) in found.missing
    assert (found.configuration, found.folder) == (kept.configuration, tmp_path)
    with pytest.raises(ConfigurationError, match="cannot be used") as failure:
        found.resolve(REFERENCE)
    assert str(path) not in str(failure.value)
    assert found.resolve("${NAME}", {"NAME": "of the environment"}) == "of the environment"


def test_name_of_a_file_without_a_folder_is_no_path() -> None:
    found = load_recorded(1, "spawnlog.json5", "{}")
    assert found.missing == "spawnlog.json5: its folder is not on record"


async def test_followed_revision_has_the_secrets_of_its_own_file(tmp_path: Path) -> None:
    own, other = write(tmp_path / "own.json5", "own"), write(tmp_path / "b.json5", "b", width=4)
    files = LoadedFiles()
    files.assign(1, own)
    await files.find(2, other.source, other.stored_text)
    assert files.file_of(pinned(1, own)).resolve(REFERENCE) == "own"
    assert files.file_of(pinned(2, other)).resolve(REFERENCE) == "b"


async def test_files_of_old_revisions_are_forgotten(tmp_path: Path) -> None:
    kept, files = write(tmp_path / "a.json5"), LoadedFiles()
    for revision in range(1, REVISIONS_REMEMBERED_MAX + 6):
        files.note_found(revision, kept)
    assert [*files._files] == [*range(6, REVISIONS_REMEMBERED_MAX + 6)]
    assert files.file_of(pinned(1, kept)) is kept


async def test_file_of_another_machine_is_replaced_by_ours(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    own, other = write(tmp_path / "own.json5", "own"), write(tmp_path / "b.json5", "b", width=4)
    (tmp_path / "b.json5").unlink()
    files = LoadedFiles()
    files.assign(1, own)
    await files.find(2, other.source, other.stored_text)
    assert files.file_of(pinned(2, other)) is own
    (record,) = caplog.records
    assert record.getMessage().endswith(
        f"its secrets are looked up at the same places of {own.source}"
    )


async def test_without_a_file_no_other_one_serves(tmp_path: Path) -> None:
    first, other = write(tmp_path / "a.json5", "a"), write(tmp_path / "b.json5", "b", width=4)
    (tmp_path / "b.json5").unlink()
    files = LoadedFiles()
    files.note_found(1, first)
    await files.find(2, other.source, other.stored_text)
    assert files.file_of(pinned(2, other)).missing is not None
    assert files.file_of(pinned(1, first)).resolve(REFERENCE) == "a"


async def test_file_that_cannot_be_read_in_time_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, files = write(tmp_path / "a.json5"), LoadedFiles()
    monkeypatch.setattr("infrastructure.outbound.configuration.files.FIND_SECONDS_MAX", 0)
    await files.find(1, kept.source, kept.stored_text)
    assert files.file_of(pinned(1, kept)).missing == f"{kept.source}: it cannot be read in 0 s"
