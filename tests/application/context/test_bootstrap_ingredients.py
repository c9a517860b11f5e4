"""What a child's workspace brings to its prompt when its session is created."""

from typing import Any
from uuid import UUID, uuid4

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


async def test_each_file_is_an_ingredient_whose_text_is_kept() -> None:
    folder = Folder(*BOTH)
    made, text_store = await brought(folder)
    assert [(one.source, one.position) for one in made.ingredients] == [
        ("bootstrap:AGENTS.md", "bootstrap"),
        ("bootstrap:TOOLS.md", "bootstrap"),
    ]
    assert [(one.kind, one.text, one.session_id) for one in text_store.contents] == [
        ("bootstrap", "Be kind.", SESSION),
        ("bootstrap", "Saw.", SESSION),
    ]
    assert [one.content for one in made.ingredients] == [one.ref for one in text_store.contents]
    assert made.ingredients[0].content.hmac == keyed_hash(KEY, b"Be kind.")
    assert made.warnings == ()
    assert folder.reads == [("/w", 20_000)]


async def test_a_light_context_has_none_and_nothing_is_looked_at() -> None:
    folder = Folder(*BOTH)
    made, text_store = await brought(folder, options=SpawnOptions(light_context=True))
    assert (made, text_store.contents, folder.reads) == (BootstrapIngredients(), (), [])


async def test_a_child_without_a_workspace_has_none() -> None:
    folder = Folder(*BOTH)
    made, _ = await brought(folder, at=None)
    assert (made, folder.reads) == (BootstrapIngredients(), [])


async def test_the_limits_are_those_of_the_agent_that_will_run() -> None:
    folder = Folder(*BOTH)
    limits = {"bootstrapMaxChars": 6, "bootstrapTotalMaxChars": 8}
    made, text_store = await brought(folder, limits=limits)
    assert folder.reads == [("/w", 6)]
    assert [one.text for one in text_store.contents] == [
        "Be kin\n\n[truncated: AGENTS.md exceeded 6 characters]",
        "Sa\n\n[truncated: TOOLS.md exceeded 2 characters]",
    ]
    assert len(made.warnings) == 2


async def test_the_caller_is_told_of_a_file_that_cannot_be_used_and_the_other_stays() -> None:
    folder = Folder(ReadFile(name="AGENTS.md", skipped="it is a symbolic link"), BOTH[1])
    made, text_store = await brought(folder)
    assert [one.text for one in text_store.contents] == ["Saw."]
    assert made.warnings == (
        "AGENTS.md of the child's workspace was left out: it is a symbolic link. Put a regular"
        " file of UTF-8 text in its place, or remove it.",
    )


async def test_a_blank_file_is_no_ingredient() -> None:
    made, text_store = await brought(Folder(ReadFile(name="TOOLS.md", text=" \n")))
    assert (made, text_store.contents) == (BootstrapIngredients(), ())
