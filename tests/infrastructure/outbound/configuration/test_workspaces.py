"""Folders for children: their agent's own, or their requester's if it is allowed."""

import os
from pathlib import Path
from typing import Any

import pytest

from application.ports.configurations import PinnedConfiguration
from application.ports.files import WorkspaceForbiddenError
from infrastructure.outbound.configuration.files import LoadedFiles
from infrastructure.outbound.configuration.workspaces import (
    ConfiguredWorkspaces,
    WorkspaceUnusableError,
)
from tests.support.builders.configurations import load_values


class Place:
    """`workspaces` of a data directory, a configured root and a folder that is below neither."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.root, self.elsewhere = folder, folder / "root", folder / "elsewhere"
        self.own = folder / "data" / "workspaces" / "main"
        self._files = LoadedFiles()
        self._chosen = ConfiguredWorkspaces(self._files, self.own.parent)
        for made in (self.root / "inside", self.elsewhere):
            made.mkdir(parents=True)
        self.configure("root")

    def configure(self, *roots: str, workspace: Path | None = None) -> None:
        agent: dict[str, Any] = {"id": "main"}
        if workspace is not None:
            agent["workspace"] = str(workspace)
        values = {"agents": {"list": [agent]}, "spawnlog": {"workspaceRoots": list(roots)}}
        self._loaded = load_values(values, folder=self.folder)
        self._files.assign(1, self._loaded)

    def of(self, *, recorded: Path | None = None, requested: Path | str | None = None) -> str:
        configuration = self._loaded.configuration
        return self._chosen.workspace_of(
            PinnedConfiguration(1, configuration, self._loaded.stored),
            configuration.effective_agent("main"),
            recorded=str(recorded) if recorded else None,
            requested=str(requested) if requested else None,
        )


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_own_folder_may_be_missing_and_is_not_made(place: Place) -> None:
    assert place.of() == str(place.own)
    assert place.of(recorded=place.elsewhere) == str(place.elsewhere)
    assert not place.own.parent.exists()


def test_own_folder_that_is_no_folder_is_an_error(place: Place) -> None:
    own = place.folder / "own"
    place.configure(workspace=own)
    own.write_text("")
    with pytest.raises(NotADirectoryError):
        place.of()
    own.unlink()
    own.symlink_to(place.folder / "nowhere")
    with pytest.raises(FileNotFoundError):
        place.of()
    place.configure(workspace=own / "inside")
    with pytest.raises(FileNotFoundError):
        place.of()


def test_own_folder_is_resolved_through_links(place: Place) -> None:
    (place.folder / "link").symlink_to(place.elsewhere)
    place.configure(workspace=place.folder / "link" / "own")
    own = place.of()
    assert own == str(place.elsewhere / "own")
    Path(own).mkdir()
    assert place.of(recorded=Path(own)) == own


@pytest.mark.parametrize("replaced", ["root", "root/inside"])
@pytest.mark.parametrize("named", [None, "deep"])
def test_recorded_folder_replaced_by_link_is_refused(
    place: Place, replaced: str, named: str | None
) -> None:
    recorded = Path(place.of(requested=place.root / "inside"))
    (place.elsewhere / "inside" / "deep").mkdir(parents=True)
    (place.elsewhere / "deep").mkdir()
    folder = place.folder / replaced
    folder.rename(place.folder / "away")
    folder.symlink_to(place.elsewhere)
    with pytest.raises(WorkspaceForbiddenError) as refused:
        place.of(recorded=recorded, requested=recorded / named if named else None)
    assert str(refused.value) == (
        "The workspace recorded for the requester is now a link to another folder. Replace the"
        " link with the folder, or ask from another session."
    )
    folder.unlink()
    (place.folder / "away").rename(folder)
    assert place.of(recorded=recorded) == str(recorded)


@pytest.mark.parametrize("how", ["recorded", "requested"])
def test_folder_that_is_not_the_agents_must_exist(place: Place, how: str) -> None:
    with pytest.raises(FileNotFoundError):
        place.of(**{how: place.root / "gone"})
    (place.root / "file").write_text("")
    with pytest.raises(NotADirectoryError):
        place.of(**{how: place.root / "file"})
    assert not (place.root / "gone").exists()


def test_request_may_name_folder_below_root(place: Place) -> None:
    inside = place.root / "inside"
    assert place.of(requested=place.root) == str(place.root)
    assert place.of(requested=inside / ".." / "inside") == str(inside)
    place.own.mkdir(parents=True)
    assert place.of(requested=place.own) == str(place.own)
    (place.elsewhere / "in").symlink_to(inside)
    assert place.of(requested=place.elsewhere / "in") == str(inside)


def test_roots_are_own_folder_and_configured_ones(place: Place) -> None:
    place.configure(workspace=place.elsewhere)
    assert place.of(requested=place.elsewhere) == str(place.elsewhere)
    with pytest.raises(WorkspaceForbiddenError):
        place.of(requested=place.root)
    (place.folder / "link").symlink_to(place.elsewhere)
    place.configure("link")
    assert place.of(requested=place.elsewhere) == str(place.elsewhere)


@pytest.mark.parametrize(
    "requested",
    [
        "{folder}/elsewhere", "{folder}/root/../elsewhere", "{folder}/rootling", "{folder}/",
        "{folder}/there-is-none", "{folder}/root/out", "root/inside", "~/x", "/a\0b",
        "{folder}/data/workspaces", "{folder}/data/workspaces/other/inside",
        "{folder}/data/workspaces/main/../other",
    ],
)  # fmt: skip
def test_request_for_folder_outside_roots_is_refused(place: Place, requested: str) -> None:
    (place.root / "out").symlink_to(place.elsewhere)
    (place.own.parent / "other" / "inside").mkdir(parents=True)
    with pytest.raises(WorkspaceForbiddenError) as refused:
        place.of(requested=requested.format(folder=place.folder))
    if "{" in requested:
        assert str(refused.value) == (
            "The workspace that the request names is not below a configured root. Add its root to "
            "spawnlog.workspaceRoots, or leave workspaceDir out."
        )


def test_folder_that_cannot_be_resolved_is_an_error(place: Place) -> None:
    (place.root / "round").symlink_to(place.root / "round")
    with pytest.raises(OSError, match="symbolic link"):
        place.of(requested=place.root / "round")
    odd = place.root / os.fsdecode(b"\xff")
    odd.mkdir()
    (place.root / "link").symlink_to(odd)
    place.configure("root", workspace=place.root / "link")
    for item in ({"requested": place.root / "link"}, {"recorded": odd}, {}):
        with pytest.raises(OSError, match="not UTF-8"):
            place.of(**item)


def test_request_only_narrows_recorded_folder(place: Place) -> None:
    inside = place.root / "inside"
    (place.root / "link").symlink_to(inside)
    (place.root / "out").symlink_to(place.elsewhere)
    assert place.of(recorded=place.root, requested=place.root) == str(place.root)
    for requested in (inside, place.root / "link"):
        assert place.of(recorded=place.root, requested=requested) == str(inside)
    for recorded, requested in ((place.root, place.root / "out"), (inside, place.root)):
        with pytest.raises(WorkspaceForbiddenError) as refused:
            place.of(recorded=recorded, requested=requested)
        assert str(refused.value) == (
            "The workspace that the request names is outside the one recorded for its requester."
            " Name a folder inside it, or leave workspaceDir out."
        )


def test_root_that_cannot_be_resolved_is_named(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("UNSET_ROOT", raising=False)
    place.configure("${UNSET_ROOT}/roots")
    with pytest.raises(WorkspaceUnusableError, match="UNSET_ROOT"):
        place.of(requested=place.root)
