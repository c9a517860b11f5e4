"""Parts of a child's prompt that are known when its session is created."""

from collections.abc import Sequence
from dataclasses import dataclass

from application.context.scripts import injected_receipts
from application.log.texts import TextStore
from application.ports.files import BootstrapFiles
from domain.configuration.configuration import EffectiveAgent
from domain.context.bootstrap_files import BootstrapFile, select_bootstrap_files, unreadable_warning
from domain.context.preamble import is_blank, preamble_sizes, preamble_warning, truncated_preamble
from domain.delivery.announcement import RunStats, announce
from domain.prompt.run_prompt import BOOTSTRAP_SOURCE, SCRIPT_SOURCE
from domain.run.facts import Ingredient, ScriptReceipt
from domain.run.plan_facts import PreambleSizes
from domain.run.state import Run
from domain.values.record import ContentRef


@dataclass(frozen=True, slots=True)
class BootstrapIngredients:
    """Prompt parts from the parent or the workspace, and warnings about them. `sizes` are those of
    a preamble."""

    ingredients: tuple[Ingredient, ...] = ()
    warnings: tuple[str, ...] = ()
    sizes: PreambleSizes | None = None


def message_ingredients(run: Run, receipts: Sequence[ScriptReceipt]) -> tuple[Ingredient, ...]:
    """Return the parts of the message in order: prepended script texts, the task, appended script
    texts."""
    scripts = [
        Ingredient(
            source=f"{SCRIPT_SOURCE}{receipt.id}",
            position=receipt.position,
            content=receipt.injected,
        )
        for receipt in injected_receipts(receipts)
        if receipt.injected is not None
    ]
    task = Ingredient(source="task", position="task", content=run.task)
    before = [ingredient for ingredient in scripts if ingredient.position == "prepend"]
    after = [ingredient for ingredient in scripts if ingredient.position == "append"]
    return (*before, task, *after)


def preamble_ingredients(
    given: ContentRef | None, text: str | None, agent: EffectiveAgent, text_store: TextStore
) -> BootstrapIngredients:
    """Return the parent's preamble, cut to the agent's limit; nothing if it is blank."""
    if given is None or text is None or is_blank(text):
        return BootstrapIngredients()
    limit = agent.subagents.context_preamble_max_chars
    cut = truncated_preamble(text, limit)
    sizes = preamble_sizes(text, limit)
    warning = preamble_warning(sizes, agent.id)
    warnings = () if warning is None else (warning,)
    if not cut:
        return BootstrapIngredients(warnings=warnings, sizes=sizes)
    content = given if cut == text else text_store.store("preamble", cut)
    ingredient = Ingredient(source="preamble", position="preamble", content=content)
    return BootstrapIngredients((ingredient,), warnings, sizes)


async def bootstrap_ingredients(
    run: Run,
    folder: str | None,
    agent: EffectiveAgent,
    files: BootstrapFiles,
    text_store: TextStore,
) -> BootstrapIngredients:
    """Return the bootstrap files of the child's folder, within its agent's limits.

    If the request asks for a light context, the folder is not read.
    """
    if run.options.light_context or folder is None:
        return BootstrapIngredients()
    read = await files.read(folder, agent.bootstrap.chars_max)
    usable = [BootstrapFile(file.name, file.text) for file in read if file.skipped is None]
    within = select_bootstrap_files(usable, agent.bootstrap)
    return BootstrapIngredients(
        tuple(
            Ingredient(
                source=f"{BOOTSTRAP_SOURCE}{file.name}",
                position="bootstrap",
                content=text_store.store("bootstrap", file.text),
            )
            for file in within.files
        ),
        (
            *(unreadable_warning(file.name, file.skipped) for file in read if file.skipped),
            *within.warnings,
        ),
    )


def refusal_announcement(run: Run, text: str) -> str:
    """Return the announcement of a refusal that no caller was waiting for."""
    announcement = announce(
        outcome="error",
        result=None,
        stats=RunStats(
            session_key=run.child_session_key or run.requester.session_key,
            session_id=str(run.session_id),
        ),
        notes=(f"the spawn was refused: {text}",),
    )
    assert announcement is not None
    return announcement.text
