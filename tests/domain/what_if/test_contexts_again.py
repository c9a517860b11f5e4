"""Given what a child was told, what it would be told: scripts and who they name, the words of its
parent, the files of its folder."""

from typing import Any

import pytest

from domain.configuration.agents import BootstrapLimits
from domain.context.bootstrap_files import BootstrapFile, select_bootstrap_files
from domain.run.facts import ScriptReceipt
from domain.what_if.verdict import SAME, Verdict
from tests.support.builders.decisions_again import Sent, Spawn, Values, but, setup
from tests.support.builders.script_receipts import candidate, receipt
from tests.support.builders.storytelling import ref

FACTS: Values = {"id": "facts", "uri": "/scripts/facts", "returnKey": "message"}
ROUTER: Values = {"id": "router", "uri": "/scripts/router", "agentIdOverrideKey": "agent"}
OUTPUT = '{"message": "a fact", "note": "a note", "agent": "editor"}'


def with_scripts(*scripts: Values, agents: tuple[str, ...] = ("editor",)) -> Values:
    """These run for everybody."""
    return setup(*agents, default={"subagents": {"contextScripts": {"run": list(scripts)}}})


def ran(name: str, injected: str | None = None, **changes: Any) -> ScriptReceipt:
    """A script that printed the output."""
    said: dict[str, Any] = {"output": ref(OUTPUT), "exit_code": 0, "error": None}
    said["injected"] = ref(injected) if injected is not None else None
    outcome = "injected" if injected is not None else "empty"
    return receipt(name, outcome, **{**said, "position": "append", **changes})


def spawn(*receipts: ScriptReceipt, **values: Any) -> Spawn:
    """A spawn for which these ran."""
    made = Spawn(receipts=receipts, **values)
    for text in (OUTPUT, "a fact"):
        made.texts.keep(text)
    return made


def where(found: Verdict) -> tuple[str, str]:
    """The verdict, and what differs."""
    assert found.difference is not None, found
    return found.verdict, found.difference.field


TOLD = spawn(ran("facts", "a fact"))


@pytest.mark.parametrize(
    "change", [{"position": "prepend"}, {"returnKey": "note"}, {"errorKey": "note"}]
)
def test_what_a_script_puts_into_the_message_is_context(change: Values) -> None:
    found = TOLD.again(with_scripts(FACTS), with_scripts({**FACTS, **change})).verdict
    assert where(found) == ("different-context", "/contextScripts")


def test_a_script_that_comes_to_the_same_words_by_another_key_is_the_same() -> None:
    """By default `message` is read, too."""
    plain = {name: value for name, value in FACTS.items() if name != "returnKey"}
    assert TOLD.again(with_scripts(FACTS), with_scripts(plain)).verdict == SAME


def test_texts_are_shown_by_where_they_come_from_and_their_size_alone() -> None:
    found = TOLD.again(with_scripts(FACTS), with_scripts({**FACTS, "returnKey": "note"})).verdict
    assert found.difference is not None
    before, after = found.difference.recorded, found.difference.decided
    known = {"script": "facts", "position": "append"}
    assert before == [{**known, "hmac": ref("a fact").hmac, "bytes": 6}]
    assert after == [{**known, "hmac": None, "bytes": 6}]


def test_two_that_swap_places_in_the_run_but_not_in_the_message_are_the_same() -> None:
    """One stands in front of the task and one behind it, whichever runs first."""
    both = spawn(ran("facts", "a fact"), ran("front", "in front", position="prepend"))
    front: Values = {"id": "front", "uri": "/scripts/front", "position": "prepend"}
    now = with_scripts(FACTS, {**front, "priority": 9})
    assert both.again(with_scripts(FACTS, front), now).verdict == SAME


def test_an_output_that_was_erased_is_named() -> None:
    now = with_scripts({**FACTS, "returnKey": "note"})
    found = TOLD.again(with_scripts(FACTS), now, erased=[OUTPUT]).verdict
    assert found.verdict == "not-replayable"
    assert found.missing == ('context script "facts": its output was erased',)


def test_one_that_printed_nothing_says_nothing_by_another_key_either() -> None:
    silent = spawn(ran("facts", output=None))
    assert (
        silent.again(with_scripts(FACTS), with_scripts({**FACTS, "returnKey": "a"})).verdict == SAME
    )


def test_scripts_that_had_not_run_when_it_was_refused_are_those_of_then_or_unknown() -> None:
    refused = TOLD.changed(refused_by="workspace")
    record = refused.record(with_scripts(FACTS)).changed({"scripts": None})
    then, now = with_scripts(FACTS), with_scripts({**FACTS, "position": "prepend"})
    assert refused.again(then, then, record=record).verdict == SAME
    found = refused.again(then, now, record=record).verdict
    assert found.missing == ("the context scripts: they had not run when it was refused",)


# Who a script names.

ROUTED = spawn(
    ran("router", candidate="editor"),
    candidates=(candidate("router", "editor"),),
    override_to="editor",
)
THEN = with_scripts(ROUTER)


def test_an_agent_that_is_not_named_any_more_is_not_the_one_that_runs() -> None:
    found = ROUTED.again(THEN, with_scripts({**ROUTER, "agentIdOverrideKey": "nowhere"})).verdict
    assert where(found) == ("different-agent", "/agentId")
    assert found.difference is not None
    assert (found.difference.recorded, found.difference.decided) == ("editor", "main")


def test_of_another_agent_what_is_on_this_machine_is_taken_to_be_in_order() -> None:
    found = ROUTED.again(THEN, with_scripts({**ROUTER, "agentIdOverrideKey": "nowhere"})).verdict
    assert found.assumed == (
        'the credentials of agent "main" can be had',
        'the workspace of agent "main" can be used',
    )


def test_an_agent_that_a_script_named_is_planned_by_its_own_settings() -> None:
    slow = but(
        THEN,
        {"agents": {"list": [{"id": "main", "subagents": {"thinking": "high"}}, {"id": "editor"}]}},
    )
    assert ROUTED.again(THEN, slow).verdict == SAME
    both = but(
        THEN,
        {"agents": {"list": [{"id": "main"}, {"id": "editor", "subagents": {"thinking": "high"}}]}},
    )
    assert where(ROUTED.again(THEN, both).verdict) == ("different-plan", "/thinking")


def test_an_agent_that_was_named_and_is_gone_leaves_the_one_that_was_asked_for() -> None:
    found = ROUTED.again(THEN, with_scripts(ROUTER, agents=())).verdict
    assert where(found) == ("different-agent", "/agentId")


def test_a_step_that_refused_the_other_agent_says_nothing_of_this_one() -> None:
    refused = ROUTED.changed(refused_by="attachments")
    found = refused.again(THEN, with_scripts({**ROUTER, "agentIdOverrideKey": "nowhere"})).verdict
    assert found.verdict == "not-replayable"
    assert found.missing == ("attachments: it was taken for another agent",)


def test_what_was_refused_by_its_plan_is_allowed_with_the_agent_that_is_named_now() -> None:
    proposed = spawn(
        ran("router", candidate="editor"),
        candidates=(candidate("router", "editor", "not_configured"),),
        agent_id="nobody",
    )
    then, now = with_scripts(ROUTER, agents=()), with_scripts(ROUTER, agents=("editor",))
    anybody = {"agents": {"defaults": {"subagents": {"allowAgents": ["*"]}}}}
    found = proposed.again(but(then, anybody), but(now, anybody)).verdict
    assert (found.verdict, found.rule) == ("newly-allowed", "agent_unknown")


# The words of its parent.

WORDS = "so many words " * 20
PREAMBLE = Spawn(preamble=WORDS)


def preambles(characters: int) -> Values:
    """So many of them are kept."""
    return setup(default={"subagents": {"contextPreambleMaxChars": characters}})


@pytest.mark.parametrize(("then", "now"), [(4000, 50), (50, 4000), (50, 0), (0, 50), (100, 50)])
def test_words_that_are_cut_elsewhere_are_another_context(then: int, now: int) -> None:
    found = PREAMBLE.again(preambles(then), preambles(now)).verdict
    assert where(found) == ("different-context", "/contextPreamble/keptCharacters")


@pytest.mark.parametrize(("then", "now"), [(4000, 280), (280, 5000), (50, 52)])
def test_limits_that_cut_at_the_same_word_are_the_same(then: int, now: int) -> None:
    assert PREAMBLE.again(preambles(then), preambles(now)).verdict == SAME


def test_an_agents_own_limit_counts_before_that_of_all() -> None:
    own = but(
        preambles(50),
        {"agents": {"list": [{"id": "main", "subagents": {"contextPreambleMaxChars": 4000}}]}},
    )
    assert PREAMBLE.again(preambles(4000), own).verdict == SAME


def test_words_that_were_erased_are_named_where_their_limit_changed_alone() -> None:
    found = PREAMBLE.again(preambles(4000), preambles(50), erased=[WORDS]).verdict
    assert found.verdict == "not-replayable"
    assert found.missing == ("the preamble: its text was erased",)
    assert PREAMBLE.again(preambles(50), preambles(50), erased=[WORDS]).verdict == SAME
    assert Spawn().again(preambles(4000), preambles(50)).verdict == SAME


def test_of_a_session_that_goes_on_only_the_cut_words_are_on_record() -> None:
    kept = Sent(preamble_kept=WORDS)
    found = kept.again(preambles(4000), preambles(50)).verdict
    assert found.verdict == "not-replayable"
    assert found.missing == ("the preamble of the session: it is on record as it was cut then",)
    assert kept.again(preambles(4000), preambles(5000)).verdict == SAME
    assert Sent(preamble_kept="short").again(preambles(4000), preambles(50)).verdict == SAME


# The files of its folder.

FILES = Spawn(bootstrap=("x" * 300, "y" * 300))


def files(one: int, together: int = 150_000) -> Values:
    """So many characters of one file, and of all."""
    return setup(default={"bootstrapMaxChars": one, "bootstrapTotalMaxChars": together})


@pytest.mark.parametrize("limits", [files(299), files(300), files(20_000, 500)])
def test_files_that_may_not_fit_are_on_record_only_as_they_were_cut(limits: Values) -> None:
    found = FILES.again(files(20_000), limits).verdict
    assert found.verdict == "not-replayable"
    assert found.missing == (
        "the bootstrap files: they are on record as they were within the limits of then",
    )


def test_files_that_fit_either_way_are_the_same() -> None:
    assert FILES.again(files(20_000), files(1_000)).verdict == SAME
    assert FILES.again(files(1_000), files(20_000, 600)).verdict == SAME


def cut_at(characters: int) -> Spawn:
    """A child whose files were cut."""
    whole = [BootstrapFile("AGENTS.md", "x" * 1_000), BootstrapFile("TOOLS.md", "y" * 1_000)]
    cut = select_bootstrap_files(whole, BootstrapLimits(characters, 150_000))
    assert cut.warnings
    return FILES.changed(bootstrap=tuple(one.text for one in cut.files), warnings=cut.warnings)


def test_files_that_were_cut_may_be_whole_now() -> None:
    cut = cut_at(300)
    assert cut.again(files(300), files(20_000)).verdict.verdict == "not-replayable"
    assert cut.again(files(300), files(300)).verdict == SAME


def test_a_model_that_was_passed_over_is_no_file_that_was_cut() -> None:
    """Whatever it is called; its warning stands beside those of files."""
    asked = FILES.changed(model="acme/bootstrap-7b")
    none = {"agents": {"defaults": {"runtime": {"type": "scripted", "models": []}}}}
    assert asked.record(but(files(1_000), none)).created is not None
    assert asked.again(but(files(1_000), none), but(files(20_000), none)).verdict == SAME


def test_without_files_there_is_nothing_to_cut() -> None:
    assert FILES.changed(light_context=True).again(files(20_000), files(1)).verdict == SAME
    assert Spawn().again(files(20_000), files(1)).verdict == SAME
