"""Credentials by agent id: found, resolved at the start, and never kept."""

import logging
from pathlib import Path
from typing import Any

import pytest

from application.ports.configurations import MissingSecretError
from application.ports.credentials import Credential
from domain.plan.credentials import NOTHING_FOUND
from infrastructure.outbound.credentials.auth_profiles import FILE_NAME
from tests.support.builders.folders import AgentFolders, api_key, write_profiles
from tests.support.servers.running_log import RunningLog

CANARY = "canary-of-a-profile-0123456789"


@pytest.fixture
def folders(running: RunningLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AgentFolders:
    monkeypatch.setenv("THERE", CANARY)
    monkeypatch.setenv("BLANK", " ")
    monkeypatch.delenv("GONE", raising=False)
    return AgentFolders(running, tmp_path)


async def texts(folders: AgentFolders, **helper: Any) -> list[str]:
    """Return the texts about missing credentials of the helper."""
    found = await folders.found(await folders.configured(**helper), "helper")
    assert CANARY not in repr(found)
    return [item.text for item in found.missing]


async def test_profiles_of_main_agent_are_a_fallback(folders: AgentFolders) -> None:
    folders.write("main", {"x:default": api_key("x", "${GONE}"), "y": api_key("y", "${THERE}")})
    folders.write("helper", {"x:default": api_key("x", CANARY + "-own")})
    pinned = await folders.configured()
    found = await folders.found(pinned, "helper")
    assert (found.profile_ids, found.given) == (("x:default", "y"), ("x:default", "y"))
    assert found.missing == ()
    assert await folders.credentials.environment(pinned, "helper") == {
        "X_API_KEY": CANARY + "-own",
        "Y_API_KEY": CANARY,
    }


async def test_variable_of_the_file_fills_an_unset_one(folders: AgentFolders) -> None:
    folders.write("helper", {"x": api_key("x", "${GONE}"), "y": api_key("y", "${THERE}")})
    pinned = await folders.configured(env={"vars": {"GONE": "of-the-file", "THERE": "not-this"}})
    assert (await folders.found(pinned, "helper")).missing == ()
    assert await folders.credentials.environment(pinned, "helper") == {
        "X_API_KEY": "of-the-file",
        "Y_API_KEY": CANARY,
    }


async def test_main_agent_has_its_own_alone(folders: AgentFolders) -> None:
    folders.write("main", {"m": api_key("m", "${THERE}")})
    folders.write("helper", {"h": api_key("h", "${THERE}")})
    pinned = await folders.configured()
    assert (await folders.found(pinned, "main")).given == ("m",)
    assert (await folders.found(pinned, "MAIN")).given == ("m",)


async def test_only_command_of_configured_agent_is_given_any(folders: AgentFolders) -> None:
    folders.write("main", {"m": api_key("m", "${GONE}")})
    pinned = await folders.configured()
    for agent_id in ("player", "nobody", "../main"):
        assert await folders.found(pinned, agent_id) == NOTHING_FOUND
        assert await folders.credentials.environment(pinned, agent_id) == {}


async def test_agent_folder_starts_from_the_configuration(
    folders: AgentFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_profiles(tmp_path / "keys" / "of-helper", {"k": api_key("k", {"file": "key"})})
    (tmp_path / "keys" / "of-helper" / "key").write_text(f"{CANARY}\n")
    monkeypatch.setenv("WHERE", "keys")
    pinned = await folders.configured(agentDir="${WHERE}/of-helper")
    assert (await folders.found(pinned, "helper")).missing == ()
    assert await folders.credentials.environment(pinned, "helper") == {"K_API_KEY": CANARY}
    monkeypatch.delenv("WHERE")
    (missing,) = (await folders.found(pinned, "helper")).missing
    assert missing.name == FILE_NAME
    assert "its agentDir: WHERE is not set" in missing.text


async def test_variable_of_runtime_replaces_profile(folders: AgentFolders) -> None:
    folders.write("helper", {"x": api_key("x", "${GONE}")})
    assert await texts(folders) == ['GONE of profile "x" is not set']
    runtime = {"type": "command", "command": ["true"], "env": {"X_API_KEY": "${THERE}"}}
    assert await texts(folders, runtime=runtime) == []
    pinned = await folders.configured(runtime=runtime)
    assert await folders.credentials.environment(pinned, "helper") == {"X_API_KEY": CANARY}


async def test_references_of_runtime_must_be_set(folders: AgentFolders) -> None:
    env = {"A": "${GONE}", "B": "${THERE} ${ALSO_GONE}", "C": "literal"}
    runtime = {"type": "command", "command": ["true"], "env": env}
    pinned = await folders.configured(runtime=runtime)
    found = await folders.found(pinned, "helper")
    assert [(item.name, item.text, item.is_unset) for item in found.missing] == [
        ("GONE", "GONE is not set", True),
        ("ALSO_GONE", "ALSO_GONE is not set", True),
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("${GONE}", 'GONE of profile "x" is not set'),
        ("${BLANK}", 'BLANK of profile "x" is not set'),
        ({"file": "key"}, 'profile "x" is in a file that does not exist'),
        ({"file": "${GONE}/key"}, 'GONE of profile "x" is not set'),
        ({"file": "."}, 'profile "x" is in a file that cannot be used: it is not a file'),
        ({"file": "~nobody-of-this-name/k"}, 'profile "x" is in a file that cannot be reached'),
        ({"file": "lines"}, 'profile "x" is in a file that cannot be used: it must hold one line'),
        ({"source": "exec", "id": "x"}, 'profile "x" has an unknown form of reference'),
        ({"file": "key", "more": 1}, 'profile "x" has an unknown form of reference'),
        (" ", 'profile "x" has a value'),
    ],
)
async def test_unresolved_value_is_told_by_name(
    folders: AgentFolders, value: object, text: str
) -> None:
    path = folders.write("helper", {"x": api_key("x", value)})
    path.with_name("lines").write_text(f"{CANARY}\n{CANARY}")
    (item,) = await texts(folders)
    assert item.startswith(text)
    assert str(path.parent) not in item
    with pytest.raises(MissingSecretError) as caught:
        await folders.credentials.environment(await folders.configured(), "helper")
    assert text in str(caught.value)
    assert CANARY not in str(caught.value)


async def test_token_is_good_until_it_expires(folders: AgentFolders) -> None:
    token = {"type": "token", "provider": "x", "token": "${THERE}", "expires": 2_000_000}
    folders.write("helper", {"x": token})
    assert await texts(folders) == []
    folders.now = 2_000.0
    assert await texts(folders) == ['profile "x" has expired']


@pytest.mark.parametrize("whose", ["helper", "main"])
async def test_unreadable_file_says_whose_it_is(folders: AgentFolders, whose: str) -> None:
    folders.write(whose, f'{{"profiles": {{"a": {CANARY}')
    (text,) = await texts(folders)
    assert text == f'{FILE_NAME} of agent "{whose}" is not JSON5 at line 1, column 20'
    with pytest.raises(MissingSecretError, match=whose):
        await folders.credentials.environment(await folders.configured(), "helper")


async def test_changed_file_is_read_again(
    folders: AgentFolders, caplog: pytest.LogCaptureFixture
) -> None:
    path = folders.write("helper", {"x": api_key("x", CANARY), "o": {"type": "oauth"}}, 0o644)
    pinned = await folders.configured()
    with caplog.at_level(logging.WARNING, "spawnlog.credentials"):
        for _ in range(3):
            assert (await folders.found(pinned, "helper")).given == ("x",)
        wide, oauth = [record.getMessage() for record in caplog.records]
        assert "other users (mode 0644)" in wide
        assert 'has profile "o", which is not used: it is of type oauth' in oauth
        caplog.clear()
        path.chmod(0o600)
        assert (await folders.found(pinned, "helper")).given == ("x",)
        assert len(caplog.records) == 1
    assert CANARY not in caplog.text
    folders.write("helper", {"z": api_key("z", CANARY)})
    assert (await folders.found(pinned, "helper")).given == ("z",)
    path.unlink()
    assert (await folders.found(pinned, "helper")).profile_ids == ()


async def test_values_are_read_at_each_start_and_not_kept(folders: AgentFolders) -> None:
    folders.write("helper", {"x": api_key("x", CANARY)})
    pinned = await folders.configured()
    await folders.found(pinned, "helper")
    first = await folders.credentials.environment(pinned, "helper")
    assert isinstance(first["X_API_KEY"], Credential)
    assert CANARY not in repr(first)
    assert CANARY not in repr(vars(folders.credentials))
    stores = [store for store in vars(folders.credentials).values() if isinstance(store, dict)]
    loaded = [item for store in stores for item in store.values()]
    assert loaded
    assert not [item for item in loaded if item.values]
    folders.write("helper", {"x": api_key("x", "another-" + CANARY)})
    second = await folders.credentials.environment(pinned, "helper")
    assert second == {"X_API_KEY": "another-" + CANARY}


@pytest.mark.parametrize("value", ["x" * 20_000, "line\n" * 150])
async def test_value_that_grows_too_large_is_missing(
    folders: AgentFolders, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THERE", value)
    folders.write("helper", {"x": api_key("x", value + "${THERE}")})
    assert await texts(folders) == []
    with pytest.raises(MissingSecretError, match='profile "x" has a value'):
        await folders.credentials.environment(await folders.configured(), "helper")


async def test_no_thread_is_asked_without_a_file(
    folders: AgentFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    request: list[object] = []

    async def in_thread(work: object, *_: object) -> object:
        request.append(work)
        return NOTHING_FOUND

    pinned = await folders.configured()
    monkeypatch.setattr("asyncio.to_thread", in_thread)
    assert (await folders.found(pinned, "helper")).profile_ids == ()
    assert await folders.credentials.environment(pinned, "helper") == {}
    assert request == []
    # The helper's profiles fall back to the main agent's file.
    folders.write("main", {"m": api_key("m", "${THERE}")})
    await folders.found(pinned, "helper")
    assert len(request) == 1


async def test_model_is_given_its_endpoint_and_no_profile(folders: AgentFolders) -> None:
    folders.write("helper", {"x": api_key("x", "${THERE}")})
    desk = {"url": "http://127.0.0.1:2/mcp", "headers": {"X-Pass": "${THERE}"}}
    model = {"type": "model", "baseUrl": "http://127.0.0.1:1/v1", "mcpServers": {"desk": desk}}
    there = await folders.configured(runtime={**model, "apiKey": "${THERE}"})
    assert await folders.found(there, "helper") == NOTHING_FOUND
    given = await folders.credentials.environment(there, "helper")
    assert given == {
        "baseUrl": "http://127.0.0.1:1/v1",
        "apiKey": CANARY,
        "mcpServers.desk.url": "http://127.0.0.1:2/mcp",
        "mcpServers.desk.headers.X-Pass": CANARY,
    }
    secrets = {name for name, value in given.items() if isinstance(value, Credential)}
    assert secrets == {"apiKey", "mcpServers.desk.headers.X-Pass"}
    gone = await folders.configured(runtime={**model, "apiKey": "${GONE}"})
    assert [item.text for item in (await folders.found(gone, "helper")).missing] == [
        "GONE is not set"
    ]
    with pytest.raises(MissingSecretError, match="the value of apiKey is not available"):
        await folders.credentials.environment(gone, "helper")
