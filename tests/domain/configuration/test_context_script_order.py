from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from domain.configuration.configuration import Configuration

Entry = dict[str, Any]

ids = st.sampled_from(["a", "b", "c", "d", "e"])
entries = st.lists(
    st.fixed_dictionaries(
        {"id": ids, "priority": st.sampled_from([-1, 0, 0.5, 1, 100])},
    ),
    max_size=6,
)


def order(defaults: list[Entry], own: list[Entry], ignore: list[str]) -> list[tuple[str, str]]:
    """The scripts for agent `x` as id and URI; the URI tells where an entry came from."""
    configuration = Configuration.model_validate(
        {
            "agents": {
                "defaults": {"subagents": {"contextScripts": {"run": marked(defaults, "default")}}},
                "list": [
                    {
                        "id": "x",
                        "subagents": {
                            "contextScripts": {"run": marked(own, "own"), "ignore": ignore}
                        },
                    }
                ],
            }
        }
    )
    return [
        (script.id, script.uri) for script in configuration.effective_agent("x").context_scripts
    ]


def marked(scripts: list[Entry], source: str) -> list[Entry]:
    return [{**script, "uri": f"{source}{at}"} for at, script in enumerate(scripts)]


def test_the_highest_priority_runs_first_and_equals_as_they_stand() -> None:
    defaults: list[Entry] = [{"id": "a"}, {"id": "b", "priority": 5}, {"id": "c"}]
    own: list[Entry] = [{"id": "d", "priority": 5}, {"id": "e", "priority": -1}]

    assert [id for id, _ in order(defaults, own, [])] == ["b", "d", "a", "c", "e"]


def test_an_agents_entry_takes_the_place_of_the_default_of_the_same_id() -> None:
    assert order([{"id": "a"}, {"id": "b"}], [{"id": "c"}, {"id": "a"}], []) == [
        ("a", "own1"),
        ("b", "default1"),
        ("c", "own0"),
    ]


def test_ignoring_leaves_out_a_default_but_never_an_own_script() -> None:
    assert order([{"id": "a"}, {"id": "b"}], [{"id": "a"}], ["a", "nobody"]) == [
        ("b", "default1"),
        ("a", "own0"),
    ]


def test_an_unknown_agent_gets_the_defaults() -> None:
    run = [{"id": "a", "uri": "x"}]
    configuration = Configuration.model_validate(
        {
            "agents": {
                "defaults": {"subagents": {"contextScripts": {"run": run}}},
                "list": [{"id": "x", "subagents": {"contextScripts": {"ignore": ["a"]}}}],
            }
        }
    )

    assert [script.id for script in configuration.effective_agent("alias").context_scripts] == ["a"]
    assert configuration.effective_agent("x").context_scripts == ()


def test_a_script_that_is_silent_about_its_time_gets_that_of_the_settings() -> None:
    run = [{"id": "a", "uri": "x"}, {"id": "b", "uri": "x", "timeoutSeconds": 10}]
    configuration = Configuration.model_validate(
        {
            "agents": {"defaults": {"subagents": {"contextScripts": {"run": run}}}},
            "spawnlog": {"scriptTimeoutSeconds": 2.5},
        }
    )

    scripts = configuration.effective_agent("main").context_scripts
    assert [script.timeout_seconds for script in scripts] == [2.5, 10]


@given(entries, entries, st.lists(ids, max_size=3))
def test_the_order_is_that_of_the_five_steps(
    defaults: list[Entry], own: list[Entry], ignore: list[str]
) -> None:
    """The steps one after another, with lists: another way than that of the code."""
    steps = [script for script in marked(defaults, "default") if script["id"] not in ignore]
    steps += marked(own, "own")
    places = list(dict.fromkeys(script["id"] for script in steps))
    chosen = [[script for script in steps if script["id"] == id][-1] for id in places]
    expected = []
    for priority in sorted({script["priority"] for script in chosen}, reverse=True):
        expected += [script for script in chosen if script["priority"] == priority]

    assert order(defaults, own, ignore) == [(script["id"], script["uri"]) for script in expected]
