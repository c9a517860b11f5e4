"""Warnings about a configuration file, and runtimes and hooks whose secrets are kept apart."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from domain.configuration.model_runtime import ModelRuntime
from infrastructure.outbound.configuration.load import LoadedConfiguration, load
from tests.support.builders.configurations import load_text, load_values
from tests.support.builders.folders import api_key, write_profiles

CANARY = "canary-0123456789"
HERE = "http://127.0.0.1:1/v1"
SCRIPTED = {"defaults": {"runtime": {"type": "scripted"}}}


@pytest.fixture(autouse=True)
def unset_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UNSET", raising=False)
    monkeypatch.setenv("EMPTY", "")


def warnings_of(loaded: LoadedConfiguration, place: str) -> list[str]:
    """Return the warnings about this place without its name; assert that none shows a secret."""
    assert CANARY not in f"{loaded.warnings}{loaded.stored_text}{loaded!r}{loaded.configuration}"
    return [str(warning).removeprefix(f"config: {place}.") for warning in loaded.warnings]


def with_model(**runtime: Any) -> LoadedConfiguration:
    whole = {"type": "model", "baseUrl": HERE, "model": "m", **runtime}
    return load_values({"agents": {"list": [{"id": "main", "runtime": whole}]}})


def model_runtime(loaded: LoadedConfiguration) -> ModelRuntime:
    runtime = loaded.configuration.effective_agent("main").runtime
    assert isinstance(runtime, ModelRuntime)
    return runtime


def with_hook(**hook: Any) -> LoadedConfiguration:
    return load_values({"agents": SCRIPTED, "spawnlog": {"hooks": {"subagentEnded": hook}}})


def model_warnings(**runtime: Any) -> list[str]:
    return warnings_of(with_model(**runtime), "agents.list[0].runtime")


def hook_warnings(**hook: Any) -> list[str]:
    return warnings_of(with_hook(**hook), "spawnlog.hooks.subagentEnded")


def test_first_fifty_warnings_are_listed() -> None:
    names = [f"agent-{number}" for number in range(2_000)]
    loaded = load_values({"agents": {"defaults": {"subagents": {"allowAgents": names}}}})
    assert len(loaded.warnings) == 50
    assert loaded.warnings[0].pointer == "/agents/defaults/subagents/allowAgents/0"


# Runtimes that call a model.


def test_model_runtime_reads_mcp_servers_as_clients_write_them() -> None:
    servers = {
        "desk": {"type": "http", "url": HERE, "timeout": 1500, "env": {"TOKEN": CANARY}},
        "wiki": {"transport": "streamable-http", "url": HERE, "requestTimeoutMs": 2000},
        "off": {"url": "${UNSET}", "disabled": True},
        "out": {"url": "${UNSET}", "enabled": False},
    }
    runtime = model_runtime(with_model(mcpServers=servers))
    used = {
        name: mcp_server.call_timeout_seconds
        for name, mcp_server in runtime.mcp_servers.items()
        if mcp_server.is_used
    }
    assert used == {"desk": 1.5, "wiki": 2.0}
    assert "mcpServers.off.url" not in runtime.values()
    assert model_warnings(mcpServers=servers) == [
        "mcpServers.desk.env: has no effect: spawnlog does not start a server that has a url"
    ]


def test_model_runtime_keeps_secrets_as_references() -> None:
    servers = {"desk": {"url": HERE, "headers": {"X-Pass": CANARY}}}
    loaded = with_model(apiKey=CANARY, mcpServers=servers)
    assert CANARY not in f"{loaded.stored_text}{loaded.configuration}"
    assert {
        name: loaded.resolve(value) for name, value in model_runtime(loaded).values().items()
    } == {
        "baseUrl": HERE,
        "apiKey": CANARY,
        "mcpServers.desk.url": HERE,
        "mcpServers.desk.headers.X-Pass": CANARY,
    }


def test_model_runtime_warns_of_unset_key_and_plain_http() -> None:
    url, key = model_warnings(baseUrl="http://models.example/v1", apiKey="${UNSET}")
    assert url.startswith("baseUrl: is plain http to another machine")
    assert key.startswith("apiKey: cannot be resolved, so this runtime will fail")
    assert model_warnings() == []


def test_model_runtime_of_earlier_release_can_be_read() -> None:
    assert ModelRuntime.model_validate({"type": "model", "anything": [1]}).values() == {}


# Hooks.


def test_hook_keeps_headers_and_query_as_references() -> None:
    url, value = f"https://h/x?who={CANARY}", f"Bearer {CANARY}"
    loaded = with_hook(url=url, headers={"X-Who": value, "X-Ref": "${REFERRED}"})
    place = "/spawnlog/hooks/subagentEnded"
    assert loaded.stored["spawnlog"]["hooks"]["subagentEnded"] == {
        "url": {"$secret": f"{place}/url"},
        "headers": {"X-Who": {"$secret": f"{place}/headers/X-Who"}, "X-Ref": "${REFERRED}"},
    }
    hook = loaded.configuration.spawnlog.hooks.subagent_ended
    assert hook is not None
    assert (loaded.resolve(hook.url), loaded.resolve(hook.headers["X-Who"])) == (url, value)
    assert CANARY not in f"{loaded.stored_text}{loaded!r}"


@pytest.mark.parametrize("url", ["https://h/x", "https://h/${PART}", "${URL}"])
def test_hook_url_without_query_is_stored(url: str) -> None:
    assert with_hook(url=url).stored["spawnlog"]["hooks"]["subagentEnded"]["url"] == url


@pytest.mark.parametrize(
    "url",
    ["https://h/", "http://localhost/", "http://127.0.0.2:1/?a=b", "http://[::1]/", "http://a.localhost/"],
)  # fmt: skip
def test_safe_hook_has_no_warning(url: str) -> None:
    assert hook_warnings(url=url, headers={"A": "b"}) == []


@pytest.mark.parametrize(
    ("url", "why"),
    [
        (f"ftp://{CANARY}/", "its resolved value must be a URL with http"),
        (f"http://u:{CANARY}@h/", "its resolved value must not contain a user name"),
        ("http://example.com/", "is plain http to another machine"),
        (f"http://10.0.0.1/?k={CANARY}", "is plain http to another machine"),
    ],
)
def test_hook_url_in_variable_is_checked(
    url: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_ADDRESS", url)
    (warning,) = hook_warnings(url="${HOOK_ADDRESS}")
    assert warning.startswith(f"url: {why}")
    if "plain" in why:
        assert hook_warnings(url=url) == [warning]


def test_hook_warns_of_unset_variables() -> None:
    url, header = hook_warnings(url="${UNSET}", headers={"X-A": "${UNSET}"})
    why = "cannot be resolved, so this hook will fail: UNSET: is not set"
    assert url.startswith(f"url: {why}")
    assert header.startswith(f"headers.X-A: {why}")


# Folders: of credentials, workspaces and their roots.


def folder_warnings(folder: Path, *agent_dirs: str) -> list[str]:
    """Return the warnings about agents with these folders, one a line from the second on."""
    path = folder / "spawnlog.json5"
    agents = [f"{{id: 'a{at}', agentDir: '{name}'}}" for at, name in enumerate(agent_dirs)]
    start = "{agents: {defaults: {runtime: {type: 'scripted'}}, list: [\n"
    path.write_text(start + ",\n".join([*agents, "{id: 'without'}"]) + "\n]}}", "utf-8")
    warnings = [str(warning).removeprefix(f"{path}:") for warning in load(path).warnings]
    assert CANARY not in str(warnings)
    return warnings


def test_usable_or_missing_profiles_have_no_warning(tmp_path: Path) -> None:
    write_profiles(tmp_path / "right", {"a": api_key("a", CANARY)})
    assert folder_warnings(tmp_path, "right", "none") == []


def test_unusable_profiles_are_warned_of_at_their_agent(tmp_path: Path) -> None:
    write_profiles(tmp_path / "oauth", {"a:me": {"type": "oauth", "access": CANARY}})
    write_profiles(tmp_path / "wide", {"a": api_key("a", CANARY)}, 0o644)
    write_profiles(tmp_path / "broken", f"{{\n\n  {CANARY}")
    write_profiles(tmp_path / "blank", {"a": api_key("a", " ")})
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / "auth-profiles.json")
    refused, file = "spawns of this agent are refused", "auth-profiles.json"
    expected = [
        ("oauth", f'{file} has profile "a:me", which is not used: it is of type', ""),
        ("wide", f"{file} may be read", ""),
        ("broken", f"{file} is not JSON5 at line 3, column", refused),
        ("pipe", f"{file} is not a regular file; ", refused),
        ("${UNSET}", "cannot be resolved, so ", ""),
        ("blank", "", "cannot be used: it has a value that is blank or contains NUL"),
    ]
    warnings = folder_warnings(tmp_path, *(name for name, _, _ in expected))
    for at, (warning, (_, start, end)) in enumerate(zip(warnings, expected, strict=True)):
        assert warning.startswith(f"{at + 2}:22: agents.list[{at}].agentDir: {start}")
        assert warning.endswith(end)
    assert "UNSET: is not set" in warnings[4]


def test_workspace_root_of_whole_machine_is_warned_of(tmp_path: Path) -> None:
    (tmp_path / "all").symlink_to("/")
    roots = json.dumps(["/", str(tmp_path), "/../.", str(tmp_path / "all")])
    text = f"{{agents: {json.dumps(SCRIPTED)}, spawnlog: {{\n workspaceRoots: {roots}}}}}"
    warnings = load_text(text, "x.json5").warnings
    assert [warning.pointer.rpartition("/")[2] for warning in warnings] == ["0", "2", "3"]
    assert warnings[0].line == 2
    assert all(warning.message.startswith("is the root folder, ") for warning in warnings)


def test_workspace_root_that_cannot_be_resolved_is_warned_of() -> None:
    roots = ["${UNSET}/x", "${EMPTY}", "~nobody-of-this-name/x", "fine"]
    loaded = load_values({"agents": SCRIPTED, "spawnlog": {"workspaceRoots": roots}})
    whys = ["UNSET: is not set", "its variable is empty", "home folder"]
    for at, (warning, why) in enumerate(zip(loaded.warnings, whys, strict=True)):
        assert warning.pointer == f"/spawnlog/workspaceRoots/{at}"
        assert why in warning.message


def test_unset_variable_of_any_text_is_warned_of_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UNSET_TOO", raising=False)
    env = {"TOKEN": "${UNSET}", "BOTH": "${UNSET}${UNSET_TOO}", "EMPTY": "${EMPTY}",
           "IN_FILE": "${FILED}", "LITERAL": "$${UNSET}"}  # fmt: skip
    runtime = {"type": "command", "command": ["cat"], "env": env}
    script = {"id": "s", "uri": "${UNSET}/x.sh"}
    values: dict[str, Any] = {
        "env": {"FILED": "x"},
        "agents": {
            "defaults": {"runtime": runtime},
            "list": [
                {"id": "a", "workspace": "${UNSET}"},
                {"id": "b", "subagents": {"contextScripts": {"run": [script]}}},
            ],
        },
        "models": {"providers": {"p": {"apiKey": "${UNSET}", "models": []}}},
        "spawnlog": {"telemetry": {"headers": {"A": "Bearer ${UNSET}"}}},
    }
    found = {warning.pointer: warning.message for warning in load_values(values).warnings}
    fails = "not set in this environment, so what needs this text will fail"
    expected = f"${{UNSET}} is {fails}"
    assert found.pop("/agents/list/0/workspace").startswith("cannot be resolved, ")
    assert found == {
        "/agents/defaults/runtime/env/TOKEN": expected,
        "/agents/defaults/runtime/env/BOTH": f"${{UNSET}}, ${{UNSET_TOO}} are {fails}",
        "/agents/list/1/subagents/contextScripts/run/0/uri": expected,
        "/spawnlog/telemetry/headers/A": expected,
    }


def test_workspace_that_cannot_be_resolved_is_warned_of_once() -> None:
    agents: dict[str, Any] = {
        "defaults": {**SCRIPTED["defaults"], "workspace": "${UNSET}/w"},
        "list": [{"id": "a"}, {"id": "b"}, {"id": "c", "workspace": "${UNSET}/c"}],
    }
    shared, own = load_values({"agents": agents}).warnings
    assert (shared.pointer, own.pointer) == (
        "/agents/defaults/workspace",
        "/agents/list/2/workspace",
    )
    assert shared.message == (
        "cannot be resolved, so a spawn that would work there is refused: UNSET: is not set, but"
        " the configuration refers to it"
    )
    agents["list"][0]["workspace"] = agents["list"][2]["workspace"] = "fine"
    assert load_values({"agents": agents}).warnings == ()


def test_workspace_with_no_folder_is_warned_of(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "dangling").symlink_to(tmp_path / "gone")
    (tmp_path / "folder").mkdir()
    workspaces = ["folder", "folder/made/later", "file", "file/below", "dangling"]
    agents = [
        {"id": f"a{at}", "workspace": f"{tmp_path}/{name}"} for at, name in enumerate(workspaces)
    ]
    warnings = load_values({"agents": {**SCRIPTED, "list": agents}}).warnings
    refused = "cannot be used, so a spawn that would work there is refused: "
    assert [(warning.pointer, warning.message) for warning in warnings] == [
        ("/agents/list/2/workspace", f"{refused}Not a directory"),
        ("/agents/list/3/workspace", f"{refused}Not a directory"),
        ("/agents/list/4/workspace", f"{refused}No such file or directory"),
    ]


# Scripts and commands.


def executable_warnings(folder: Path, agents: dict[str, Any]) -> list[tuple[str, str]]:
    """Return pointer and message of the warnings about these agents, the folder left out."""
    path = folder / "spawnlog.json5"
    path.write_text(json.dumps({"agents": agents}), "utf-8")
    warnings = load(path).warnings
    return [(warning.pointer, warning.message.replace(f"{folder}/", "")) for warning in warnings]


def test_scripts_that_cannot_be_executed_are_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("WORD", CANARY)
    monkeypatch.setenv("HOOK", f"https://u:{CANARY}@h/x")
    (tmp_path / "plain").write_text("#!/bin/sh\n")
    (tmp_path / "good").write_text("#!/bin/sh\n")
    (tmp_path / "good").chmod(0o755)
    usable = ["good", "~/good", str(tmp_path / "good"), "https://h/x", "${UNSET_WORD}/good"]
    expected = {
        "gone": "not found: gone",
        "~/gone": "not found: gone",
        "plain": "is not executable: plain; make it executable with chmod +x",
        ".": "is a directory: .; name the file in it",
        "${WORD}/gone": "not found: ${WORD}/gone",
        "${HOOK}": "is a URL only after its variables are replaced, so it is taken for a file;"
        " write http:// or https:// in uri",
    }

    def scripts(*uris: str) -> dict[str, Any]:
        run = [{"id": f"s{at}", "uri": uri} for at, uri in enumerate(uris)]
        return {"subagents": {"contextScripts": {"run": run}}}

    agents = {
        "defaults": {**SCRIPTED["defaults"], **scripts("gone")},
        "list": [{"id": "a", **scripts(*usable, *expected)}],
    }
    shared, *own, unset = executable_warnings(tmp_path, agents)
    assert shared == (
        "/agents/defaults/subagents/contextScripts/run/0/uri",
        "not found: gone; this script fails for every spawn of every agent",
    )
    assert own == [
        (
            f"/agents/list/0/subagents/contextScripts/run/{len(usable) + at}/uri",
            f'{why}; this script fails for every spawn of agent "a"',
        )
        for at, why in enumerate(expected.values())
    ]
    assert unset[0].endswith(f"/{len(usable) - 1}/uri")
    assert CANARY not in str(own)


def test_commands_that_cannot_be_executed_are_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "own").mkdir()
    for name in ("good", "own/special"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    path = {"PATH": str(tmp_path / "own")}
    commands: list[tuple[str, dict[str, str], str | None]] = [
        ("sh", {}, None),
        ("special", path, None),
        ("~/good", {}, None),
        ("./made-by-the-child", {}, None),
        ("special", {}, "not found in PATH: special"),
        ("sh", path, "not found in PATH: sh"),
        ("/gone/agent", {}, "not found: /gone/agent"),
        ("~/own", {}, "is a directory: own; name the file in it"),
    ]
    runtimes = [
        {"type": "command", "command": [program], "env": env} for program, env, _ in commands
    ]
    agents = {
        "defaults": {"runtime": runtimes[-1]},
        "list": [{"id": f"a{at}", "runtime": runtime} for at, runtime in enumerate(runtimes)],
    }
    shared, *own = executable_warnings(tmp_path, agents)
    assert shared == (
        "/agents/defaults/runtime/command/0",
        f"{commands[-1][2]}; every run of an agent without a runtime of its own fails",
    )
    assert own == [
        (f"/agents/list/{at}/runtime/command/0", f'{why}; every run of agent "a{at}" fails')
        for at, (_, _, why) in enumerate(commands)
        if why is not None
    ]
