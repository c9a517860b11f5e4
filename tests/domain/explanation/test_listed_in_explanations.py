"""Explanations name the lists and roots of the revision that the decision was made under."""

from typing import Any

from domain.configuration.configuration import Configuration
from domain.context.preamble import preamble_sizes
from domain.explanation.record import RuleExplanation
from domain.run.facts import Ingredient
from domain.run.plan_facts import PreambleSizes, WorkspaceFacts
from domain.values.record import ContentRef
from tests.support.builders.explained_spawns import ADMITTED, of_the_plan, plan_facts, the
from tests.support.builders.run_histories import created, refused, resolved
from tests.support.builders.storytelling import ref, requested


def configured(**sections: Any) -> Configuration:
    return Configuration.model_validate(sections)


def test_tools_tell_the_lists_that_they_were_made_from_and_where_those_stand() -> None:
    lists = {"alsoAllow": ["read"], "deny": ["exec"]}
    under = configured(tools={"subagents": {"tools": lists}})
    events = requested(), ADMITTED, resolved(), created(facts=plan_facts())
    one = the("tool_policy", *events, configuration=under)
    assert one.compared is not None
    assert one.compared["configured"] == {
        "allow": None,
        "alsoAllow": ["read"],
        "deny": ["exec"],
        "at": "tools.subagents.tools",
    }
    assert one.text == (
        'tools of role "orchestrator", by tools.subagents.tools: every tool, 0 denied'
    )
    one = the("tool_policy", *events, configuration=configured())
    assert one.compared is not None
    nothing = dict.fromkeys(("allow", "alsoAllow", "deny"))
    assert one.compared["configured"] == {**nothing, "at": "built-in"}
    assert one.text == 'tools of role "orchestrator", by the built-in lists: every tool, 0 denied'


def test_a_workspace_tells_the_roots_as_the_file_writes_them() -> None:
    under = configured(spawnlog={"workspaceRoots": ["${HARBOUR}/work", "~/x"]})
    request = requested(workspace_argument=ref("/srv/asked"))
    folder = WorkspaceFacts(source="requester", recorded=None)
    events = request, ADMITTED, resolved()
    gone = refused(rule="workspace", facts=plan_facts(workspace=folder))
    one = the("workspace", *events, gone, configuration=under)
    assert one.compared is not None
    assert one.compared["workspaceRoots"] == ["${HARBOUR}/work", "~/x"]
    assert one.text == (
        'the folder of the requester cannot be used; workspaceRoots: "${HARBOUR}/work", "~/x"'
    )
    one = the("workspace", *events, gone, configuration=configured())
    assert one.text == "the folder of the requester cannot be used; workspaceRoots: none"
    one = the("workspace", *events, created(facts=plan_facts()), configuration=under)
    assert one.text == "the folder of the agent is used"


def test_lists_of_a_revision_that_cannot_be_read_are_not_told() -> None:
    for rule, name in (("tool_policy", "configured"), ("workspace", "workspaceRoots")):
        compared = of_the_plan(rule).compared
        assert compared is not None
        assert compared[name] is None


def test_tools_and_capabilities_are_those_of_the_role() -> None:
    one = of_the_plan(
        "tool_policy", plan={"tools_allow": ("read",), "tools_deny": ("exec", "cron")}
    )
    assert one.text == 'tools of role "orchestrator": 1 allowed, 2 denied'
    assert one.compared == {
        "role": "orchestrator",
        "allow": ["read"],
        "deny": ["exec", "cron"],
        "configured": None,
    }
    assert of_the_plan("tool_policy").text == 'tools of role "orchestrator": every tool, 0 denied'
    one = of_the_plan("capabilities")
    assert one.text == 'depth 1 of at most 2 has role "orchestrator" and control scope "children"'
    assert one.compared is not None
    assert one.compared["maxDepth"] == 2


def test_both_sizes_of_what_a_parent_told_its_child_are_explained() -> None:
    def told(
        given: ContentRef | None, sizes: PreambleSizes | None, *, kept: bool
    ) -> RuleExplanation:
        pieces = (ref("kept"),) if kept else ()
        ingredients = tuple(
            Ingredient(source="preamble", position="preamble", content=one) for one in pieces
        )
        child = created(facts=plan_facts(), ingredients=ingredients, preamble=sizes)
        return the("preamble", requested(preamble=given), ADMITTED, resolved(), child)

    def sizes(kept: int) -> PreambleSizes:
        return preamble_sizes("a" * 10, kept)

    given = ref("given")
    assert told(None, None, kept=False).text == "no context was handed over"
    assert told(given, None, kept=False).text.endswith("nothing stood in it")
    assert told(given, None, kept=True).result == "not_recorded"
    whole = told(given, sizes(20), kept=True)
    assert whole.text == ("10 of 10 characters of context were handed over, whole; at most 20")
    assert whole.compared == {
        "givenCharacters": 10,
        "givenBytes": 10,
        "keptCharacters": 10,
        "keptBytes": 10,
        "charactersMax": 20,
    }
    assert told(given, sizes(4), kept=True).text.startswith("4 of 10 characters")
    assert "not at all" in told(given, sizes(0), kept=False).text
