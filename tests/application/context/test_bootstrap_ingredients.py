"""Bootstrap files of a child's workspace in its prompt."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from application.context.prompt_inputs import BootstrapIngredients, bootstrap_ingredients
from application.log.texts import TextStore, keyed_hash
from application.ports.files import ReadFile
from domain.configuration.configuration import Configuration
from domain.run.facts import SpawnOptions
from tests.support.builders.planned_children import asked

KEY = b"k" * 32
SESSION = UUID("00000000-0000-4000-8000-000000000001")
BOTH = (ReadFile(name="AGENTS.md", text="Be kind."), ReadFile(name="TOOLS.md", text="Saw."))


class Folder:
    """A folder with these files that notes how it was read."""

    def __init__(self, *files: ReadFile) -> None:
        self.files = files
        self.reads: list[tuple[str, int]] = []

    async def read(self, folder: str, chars_max: int) -> tuple[ReadFile, ...]:
        self.reads.append((folder, chars_max))
        return self.files


async def brought(
    folder: Folder, *, at: str | None = "/w", limits: dict[str, Any] | None = None, **changes: Any
) -> tuple[BootstrapIngredients, TextStore]:
    text_store = TextStore(SESSION, KEY, uuid4)
    configured = Configuration.model_validate({"agents": {"defaults": limits or {}}})
    agent = configured.effective_agent("main")
    assert agent is not None
    return await bootstrap_ingredients(asked(**changes), at, agent, folder, text_store), text_store


async def test_each_file_is_an_ingredient() -> None:
    folder = Folder(*BOTH)
    made, text_store = await brought(folder)
    assert [(ingredient.source, ingredient.position) for ingredient in made.ingredients] == [
        ("bootstrap:AGENTS.md", "bootstrap"),
        ("bootstrap:TOOLS.md", "bootstrap"),
    ]
    assert [
        (content.kind, content.text, content.session_id) for content in text_store.contents
    ] == [
        ("bootstrap", "Be kind.", SESSION),
        ("bootstrap", "Saw.", SESSION),
    ]
    assert [ingredient.content for ingredient in made.ingredients] == [
        content.ref for content in text_store.contents
    ]
    assert made.ingredients[0].content.hmac == keyed_hash(KEY, b"Be kind.")
    assert made.warnings == ()
    assert folder.reads == [("/w", 20_000)]


@pytest.mark.parametrize(
    ("at", "options", "files", "reads"),
    [
        ("/w", SpawnOptions(light_context=True), BOTH, 0),
        (None, SpawnOptions(), BOTH, 0),
        ("/w", SpawnOptions(), (ReadFile(name="TOOLS.md", text=" \n"),), 1),
    ],
    ids=["light context", "no workspace", "blank file"],
)
async def test_child_has_no_ingredients(
    at: str | None, options: SpawnOptions, files: tuple[ReadFile, ...], reads: int
) -> None:
    folder = Folder(*files)
    made, text_store = await brought(folder, at=at, options=options)
    assert (made, text_store.contents) == (BootstrapIngredients(), ())
    assert len(folder.reads) == reads


async def test_limits_are_those_of_the_agent_that_will_run() -> None:
    """An unusable file gets a warning, and the other one is kept."""
    folder = Folder(ReadFile(name="AGENTS.md", skipped="it is a symbolic link"), BOTH[1])
    limits = {"bootstrapMaxChars": 3, "bootstrapTotalMaxChars": 2}
    made, text_store = await brought(folder, limits=limits)
    assert folder.reads == [("/w", 3)]
    assert [content.text for content in text_store.contents] == [
        "Sa\n\n[truncated: TOOLS.md exceeded 2 characters]"
    ]
    link, cut = made.warnings
    assert link.startswith("AGENTS.md of the child's workspace was left out: it is a symbolic link")
    assert cut.startswith("TOOLS.md")
