"""Folders for children: their agent's own, or their requester's where that may be had."""

import os
from pathlib import Path
from typing import Any

import pytest

from application.ports.configurations import PinnedConfiguration
from application.ports.files import WorkspaceForbidden
from infrastructure.outbound.configuration.files import LoadedFiles
from infrastructure.outbound.configuration.workspaces import (
    ConfiguredWorkspaces,
    WorkspaceUnusable,
)
from tests.support.builders.configurations import load_values

UNSET = "SPAWNLOG_TEST_ROOT_NOBODY_SETS"


class Place:
    """A data directory's `workspaces`, a configured root and something that is below neither."""

    def __init__(self, folder: Path) -> None:
        self.files = LoadedFiles()
        self.workspaces = folder / "data" / "workspaces"
        self._chosen = ConfiguredWorkspaces(self.files, self.workspaces)
        self.root = folder / "root"
        self.elsewhere = folder / "elsewhere"
        for made in (self.root / "inside", self.elsewhere):
            made.mkdir(parents=True)

    @property
    def pinned(self) -> PinnedConfiguration:
        return PinnedConfiguration(1, self.loaded.configuration, self.loaded.stored)

    def of(self, *, recorded: Path | None = None, requested: Path | str | None = None) -> str:
        pinned = self.pinned
        return self._chosen.workspace_of(
            pinned,
            pinned.configuration.effective_agent("main"),
            recorded=str(recorded) if recorded else None,
            requested=str(requested) if requested else None,
        )

    def configured(self, *roots: str, workspace: str | None = None) -> None:
        agent: dict[str, Any] = {"id": "main"}
        if workspace is not None:
            agent["workspace"] = workspace
        values = {"agents": {"list": [agent]}, "spawnlog": {"workspaceRoots": list(roots)}}
        self.loaded = load_values(values, folder=self.root.parent)
        self.files.assign(1, self.loaded)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    made.configured("root")
    return made


async def test_an_agents_own_folder_need_not_be_there_and_is_not_made(place: Place) -> None:
    assert place.of() == str(place.workspaces / "main")
    assert not place.workspaces.exists()


async def test_something_else_in_the_place_of_an_agents_own_folder_is_an_error(
    place: Place,
) -> None:
    own = place.root.parent / "own"
    place.configured(workspace=str(own))
    own.write_text("")
    with pytest.raises(NotADirectoryError):
        place.of()
    own.unlink()
    own.symlink_to(place.root.parent / "nowhere")
    with pytest.raises(FileNotFoundError):
        place.of()
    place.configured(workspace=str(own / "inside"))
    with pytest.raises(FileNotFoundError):
        place.of()


async def test_what_is_on_record_is_inherited_wherever_it_is(place: Place) -> None:
    assert place.of(recorded=place.elsewhere) == str(place.elsewhere)
    assert not place.workspaces.exists()


async def test_the_folder_of_an_agent_is_the_one_that_links_lead_to(place: Place) -> None:
    (place.root.parent / "link").symlink_to(place.elsewhere)
    place.configured(workspace=str(place.root.parent / "link" / "own"))
    own = place.of()
    assert own == str(place.elsewhere / "own")
    Path(own).mkdir()
    assert place.of(recorded=Path(own)) == own


@pytest.mark.parametrize("replaced", ["root", "root/inside"])
@pytest.mark.parametrize("named", [None, "deep"])
async def test_a_folder_on_record_that_a_link_took_the_place_of_is_refused(
    place: Place, replaced: str, named: str | None
) -> None:
    recorded = Path(place.of(requested=place.root / "inside"))
    (place.elsewhere / "inside" / "deep").mkdir(parents=True)
    (place.elsewhere / "deep").mkdir()
    folder = place.root.parent / replaced
    folder.rename(place.root.parent / "away")
    folder.symlink_to(place.elsewhere)
    with pytest.raises(WorkspaceForbidden) as refused:
        place.of(recorded=recorded, requested=recorded / named if named else None)
    assert str(refused.value) == (
        "The workspace on record for the requester is not the folder it was: a link leads from it "
        "to another one. Put the folder back in the place of the link, or ask from another session."
    )
    folder.unlink()
    (place.root.parent / "away").rename(folder)
    assert place.of(recorded=recorded) == str(recorded)


@pytest.mark.parametrize("how", ["recorded", "requested"])
async def test_a_folder_that_is_not_the_agents_own_has_to_be_there(place: Place, how: str) -> None:
    with pytest.raises(FileNotFoundError):
        place.of(**{how: place.root / "gone"})
    (place.root / "file").write_text("")
    with pytest.raises(NotADirectoryError):
        place.of(**{how: place.root / "file"})
    assert not (place.root / "gone").exists()


async def test_a_request_may_name_a_folder_below_a_root(place: Place) -> None:
    assert place.of(requested=place.root) == str(place.root)
    assert place.of(requested=place.root / "inside" / ".." / "inside") == str(place.root / "inside")
    (place.workspaces / "main").mkdir(parents=True)
    assert place.of(requested=place.workspaces / "main") == str(place.workspaces / "main")


async def test_an_agents_own_folder_is_a_root_for_its_children(place: Place) -> None:
    place.configured(workspace=str(place.elsewhere))
    assert place.of(requested=place.elsewhere) == str(place.elsewhere)
    with pytest.raises(WorkspaceForbidden):
        place.of(requested=place.root)


@pytest.mark.parametrize("name", ["elsewhere", "root/../elsewhere", "rootling", ""])
async def test_a_request_names_nothing_else(place: Place, name: str) -> None:
    with pytest.raises(WorkspaceForbidden) as refused:
        place.of(requested=f"{place.root.parent}/{name}")
    assert str(refused.value) == (
        "The workspace that the request names is not below a configured root. Add its root to "
        "spawnlog.workspaceRoots, or leave workspaceDir out."
    )


@pytest.mark.parametrize("text", ["root/inside", "~/x", "/a\0b"])
async def test_a_request_names_a_whole_path(place: Place, text: str) -> None:
    with pytest.raises(WorkspaceForbidden):
        place.of(requested=text)


async def test_the_folders_of_other_agents_are_no_root(place: Place) -> None:
    (place.workspaces / "other" / "inside").mkdir(parents=True)
    for named in ("", "other", "other/inside", "main/../other"):
        with pytest.raises(WorkspaceForbidden):
            place.of(requested=place.workspaces / named)


async def test_a_link_leads_where_it_leads(place: Place) -> None:
    (place.root / "out").symlink_to(place.elsewhere)
    with pytest.raises(WorkspaceForbidden):
        place.of(requested=place.root / "out")
    (place.elsewhere / "in").symlink_to(place.root / "inside")
    assert place.of(requested=place.elsewhere / "in") == str(place.root / "inside")
    (place.root / "round").symlink_to(place.root / "round")
    with pytest.raises(OSError, match="symbolic link"):
        place.of(requested=place.root / "round")


async def test_folder_whose_name_is_no_utf8_is_an_error(place: Place) -> None:
    odd = place.root / os.fsdecode(b"\xff")
    odd.mkdir()
    (place.root / "link").symlink_to(odd)
    place.configured("root", workspace="root/link")
    for asked in ({"requested": place.root / "link"}, {"recorded": odd}, {}):
        with pytest.raises(OSError, match="not UTF-8"):
            place.of(**asked)


async def test_a_root_may_be_a_link_itself(place: Place) -> None:
    (place.root.parent / "link").symlink_to(place.elsewhere)
    place.configured("link")
    assert place.of(requested=place.elsewhere) == str(place.elsewhere)


async def test_whether_something_exists_is_told_below_the_roots_alone(place: Place) -> None:
    for name in ("there-is-none", "elsewhere"):
        with pytest.raises(WorkspaceForbidden):
            place.of(requested=place.root.parent / name)


async def test_a_request_only_narrows_what_is_on_record(place: Place) -> None:
    inside = place.root / "inside"
    assert place.of(recorded=place.root, requested=inside) == str(inside)
    assert place.of(recorded=place.root, requested=place.root) == str(place.root)
    (place.root / "link").symlink_to(inside)
    assert place.of(recorded=place.root, requested=place.root / "link") == str(inside)
    (place.root / "out").symlink_to(place.elsewhere)
    with pytest.raises(WorkspaceForbidden):
        place.of(recorded=place.root, requested=place.root / "out")
    with pytest.raises(WorkspaceForbidden) as refused:
        place.of(recorded=inside, requested=place.root)
    assert str(refused.value) == (
        "The workspace that the request names is not in the one on record for its requester. "
        "Name a folder in that one, or leave workspaceDir out."
    )


async def test_a_root_that_cannot_be_told_is_no_root(place: Place) -> None:
    place.configured(f"${{{UNSET}}}/roots")
    with pytest.raises(WorkspaceUnusable, match=UNSET):
        place.of(requested=place.root)
