"""What context scripts did, explained from their receipts."""

import pytest

from domain.run.facts import Candidate
from tests.support.builders.explained_spawns import ADMITTED, the, told
from tests.support.builders.run_histories import overridden, resolved
from tests.support.builders.script_receipts import candidate, receipt
from tests.support.builders.storytelling import requested, run_id


def test_each_script_tells_what_it_did_and_no_text_of_it() -> None:
    receipts = (
        receipt("who", "injected", exit_code=0, output_bytes=812, candidate="steward"),
        receipt("slow", "failed"),
        receipt("rest", "skipped", duration_ms=0),
        receipt("mute", "empty", exit_code=0),
    )
    scripts = [
        one
        for one in told(requested(), ADMITTED, resolved(receipts=receipts))
        if one.rule == "context_scripts"
    ]
    assert [one.text for one in scripts] == [
        'script "who" gave a text for the prompt, and proposed "steward"',
        'script "slow" failed, which refuses nothing and proposes nobody',
        'script "rest" was skipped',
        'script "mute" gave no text',
    ]
    assert {(one.result, one.step, one.position) for one in scripts} == {("passed", "scripts", 12)}
    assert scripts[0].compared == {
        "id": "who",
        "outcome": "injected",
        "durationMs": 31,
        "exitCode": 0,
        "statusCode": None,
        "outputBytes": 812,
        "candidate": "steward",
    }


def test_what_was_used_again_says_for_which_run_it_was_said() -> None:
    receipts = (receipt("who", "injected", exit_code=0, reused_from=run_id(9)),)
    one = the("context_scripts", requested(), ADMITTED, resolved(receipts=receipts))
    assert one.text == (
        'script "who" gave a text for the prompt; it was not run: what it said for run'
        f" {run_id(9)} was read again"
    )
    assert one.compared is not None
    assert one.compared["reusedFrom"] == str(run_id(9))


def test_an_override_tells_who_was_put_in_whose_place_and_by_whom() -> None:
    candidates = candidate("who", "steward", "winner"), candidate("b", None, "invalid_agent_id")
    events = (
        requested(),
        ADMITTED,
        resolved(candidates=candidates),
        overridden(candidates=candidates),
    )
    one = the("override", *events)
    assert one.text == '"steward" was put in the place of "main" by script "who"'
    assert (one.result, one.position) == ("passed", 13)
    assert one.compared is not None
    assert (one.compared["from"], one.compared["to"]) == ("main", "steward")
    assert [c["verdict"] for c in one.members()["compared"]["candidates"]] == [
        "winner",
        "invalid_agent_id",
    ]
    assert the("override", *events[:3]).result == "not_judged"


@pytest.mark.parametrize(
    ("candidates", "text"),
    [
        ((), 'no script proposed an agent, so "main" stays'),
        (
            (candidate("a", "ghost", "not_configured"),),
            'nobody who was proposed can be taken, so "main" stays',
        ),
        ((candidate("a", "main", "winner"),), 'script "a" confirmed "main"'),
        (
            (candidate("a", "other", "credentials_missing"),),
            'nobody who was proposed can be taken, so "main" stays; credentials of "other" are'
            " missing",
        ),
    ],
)
def test_without_an_override_the_agent_stays(candidates: tuple[Candidate, ...], text: str) -> None:
    one = the("override", requested(), ADMITTED, resolved(candidates=candidates))
    assert (one.result, one.text, one.position) == ("passed", text, 12)
