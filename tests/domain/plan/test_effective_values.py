from typing import Any

from domain.configuration.configuration import Configuration
from domain.plan.effective import effective_values


def effective(stored: dict[str, Any]) -> dict[str, Any]:
    return effective_values(Configuration.model_validate(stored), stored)


def test_every_default_is_written_out() -> None:
    values = effective({})

    assert values["agents"]["defaults"]["subagents"]["maxChildrenPerAgent"] == 5
    assert values["agents"]["defaults"]["sandbox"]["mode"] == "off"
    assert values["agents"]["defaults"]["bootstrapMaxChars"] == 20_000
    assert values["agents"]["defaults"]["bootstrapTotalMaxChars"] == 150_000
    assert values["agents"]["list"][0]["bootstrapMaxChars"] is None
    assert [agent["id"] for agent in values["agents"]["list"]] == ["main"]
    assert values["spawnlog"]["port"] == 8700
    assert values["spawnlog"]["workspaceRoots"] == []
    assert values["spawnlog"]["hooks"]["subagentEnded"] is None
    assert values["spawnlog"]["hooks"]["attemptsMax"] == 8
    bindings = values["session"].pop("threadBindings")
    assert values["session"] == {"mainKey": "main", "scope": "per-sender"}
    assert bindings == {
        "enabled": True,
        "spawnSessions": True,
        "defaultSpawnContext": "fork",
        "idleHours": None,
        "maxAgeHours": None,
    }


def test_written_out_once_more_it_is_the_same() -> None:
    once = effective(
        {
            "agents": {
                "list": [{"id": "a", "model": "p/m", "runtime": {"type": "scripted"}}],
                "defaults": {"subagents": {"contextScripts": {"run": [{"id": "s", "uri": "s"}]}}},
            },
            "spawnlog": {"scriptTimeoutSeconds": 3, "databaseUrl": "${URL}"},
            "channels": {"any": ["thing"]},
        }
    )

    assert effective(once) == once
    assert once["channels"] == {"any": ["thing"]}


def test_a_script_without_a_timeout_has_that_of_the_server() -> None:
    scripts = {"run": [{"id": "a", "uri": "a"}, {"id": "b", "uri": "b", "timeoutSeconds": 10}]}
    values = effective(
        {
            "agents": {
                "defaults": {"subagents": {"contextScripts": scripts}},
                "list": [{"id": "x", "subagents": {"contextScripts": scripts}}],
            },
            "spawnlog": {"scriptTimeoutSeconds": 3},
        }
    )

    (agent,) = values["agents"]["list"]
    for section in (values["agents"]["defaults"], agent):
        run = section["subagents"]["contextScripts"]["run"]
        assert [script["timeoutSeconds"] for script in run] == [3, 10]


def test_secrets_stay_the_references_they_are() -> None:
    token = {"id": "t", "scopes": ["read"], "sessions": ["*"]}
    sources = ["${NAME}", {"file": "token"}, {"$secret": "/spawnlog/tokens/2/token"}]
    reference = {"$secret": "/agents/defaults/runtime/env/KEY"}
    runtime = {"type": "command", "command": ["x"], "env": {"KEY": reference}}
    values = effective(
        {
            "agents": {"defaults": {"runtime": runtime}},
            "spawnlog": {
                "databaseUrl": {"$secret": "/spawnlog/databaseUrl"},
                "tokens": [
                    {**token, "id": f"t{index}", "token": source}
                    for index, source in enumerate(sources)
                ],
            },
        }
    )

    assert values["spawnlog"]["databaseUrl"] == {"$secret": "/spawnlog/databaseUrl"}
    assert [one["token"] for one in values["spawnlog"]["tokens"]] == sources
    assert values["agents"]["defaults"]["runtime"]["env"] == {"KEY": reference}
