"""What has to be known before a child is decided, in which order, and what stops it."""

from typing import Any

import pytest

from domain.plan.child import RefusedChild
from domain.plan.credentials import NOTHING_FOUND
from domain.plan.request import ChosenWorkspace
from domain.run.facts import STEP_ORDER, StepName
from domain.run.plan_facts import WorkspaceFacts
from domain.run.state import Run
from domain.spawn.pipeline import ChildFacts, Need
from domain.spawn.stages import MESSAGE_STAGES, SPAWN_STAGES, Stage, decide_child
from domain.values import rules
from domain.values.refusals import Refusal
from tests.support.builders.planned_children import asked, configuration

FOLDER = ChosenWorkspace(WorkspaceFacts(source="agent", recorded=None, chosen="/w"))
NO_THREAD = rules.THREAD_BINDING.refusal("nobody binds threads here")
NOT_WRITTEN = rules.ATTACHMENTS.refusal("the disk is full", status="error")


def answered(facts: ChildFacts, need: Need, run: Run, refused: str) -> ChildFacts:
    """The facts with what was needed; what is `refused` is a place or a step."""
    match need.what:
        case "agent":
            return facts.changed({"agent_id": run.agent_id})
        case "credentials":
            return facts.changed({"credentials": NOTHING_FOUND})
        case "workspace":
            return facts.changed({"workspace": FOLDER})
        case "places":
            places: dict[StepName, bool | Refusal] = dict.fromkeys(STEP_ORDER, False)
            places |= {"workspace": True, "attachments": True}
            if refused == "thread_binding":
                places["thread_binding"] = NO_THREAD
            return facts.changed({"places": places})
        case "step":
            assert need.step is not None
            return facts.with_step(need.step, NOT_WRITTEN if need.step == refused else None)


def gone_through(
    stages: tuple[Stage, ...], run: Run, refused: str = "nothing", **known: Any
) -> tuple[list[str], RefusedChild | None]:
    """What is needed, one after the other, and the refusal in the end."""
    facts = ChildFacts(
        run=run, configuration=configuration({"id": "main"}), requester_sandboxed=False
    )
    facts = facts.changed(known)
    needed: list[str] = []
    facts, found = decide_child(stages, facts)
    while isinstance(found, Need):
        needed.append(found.step or found.what)
        facts, found = decide_child(stages, answered(facts, found, run, refused))
    assert found is not None or facts.plan.plan.workspace_dir == "/w"
    return needed, found


def test_a_spawn_needs_one_thing_after_the_other() -> None:
    needed, refused = gone_through(SPAWN_STAGES, asked())
    assert needed == ["agent", "credentials", "workspace", "places", "workspace", "attachments"]
    assert refused is None


def test_a_message_needs_credentials_and_the_folder_alone() -> None:
    needed, refused = gone_through(MESSAGE_STAGES, asked(), agent_id="main")
    assert (needed, refused) == (["credentials", "workspace"], None)


def test_an_agent_that_is_not_configured_needs_no_folder() -> None:
    needed, refused = gone_through(SPAWN_STAGES, asked("nobody"))
    assert needed == ["agent", "credentials"]
    assert refused is not None
    assert (refused.refusal.rule, refused.step) == ("agent_unknown", "preparation")


@pytest.mark.parametrize(
    ("at", "refusal", "taken"),
    [("thread_binding", NO_THREAD, []), ("attachments", NOT_WRITTEN, ["workspace", "attachments"])],
)
def test_a_step_that_cannot_be_taken_ends_it_there(
    at: str, refusal: Refusal, taken: list[str]
) -> None:
    needed, refused = gone_through(SPAWN_STAGES, asked(), refused=at)
    assert needed == ["agent", "credentials", "workspace", "places", *taken]
    assert refused is not None
    assert (refused.refusal, refused.step) == (refusal, at)
    assert refused.facts.workspace == FOLDER.facts


def test_what_is_on_record_is_not_needed_again() -> None:
    known: dict[str, Any] = {
        "agent_id": "main",
        "places": {"workspace": True},
        "taken": {"workspace": None},
    }
    needed, refused = gone_through(SPAWN_STAGES, asked(), **known)
    assert (needed, refused) == (["credentials", "workspace"], None)
