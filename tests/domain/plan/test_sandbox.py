"""Who is in a sandbox, and whom it may spawn."""

import pytest

from domain.configuration.agents import is_sandboxed
from domain.configuration.configuration import Configuration
from domain.plan.sandbox import missing_sandbox_refusal, sandbox_refusal
from domain.run.plan_facts import SandboxFacts

MAIN = "agent:main:main"
CHILD = "agent:main:subagent:00000000-0000-4000-8000-000000000001"
PEER = "agent:main:mail:direct:someone"


def facts(
    *, child: bool, requester: bool = False, required: bool = False, provides: bool = False
) -> SandboxFacts:
    return SandboxFacts(
        mode="all" if child else "off",
        child_sandboxed=child,
        runtime_provides=provides,
        requester_sandboxed=requester,
        required=required,
    )


@pytest.mark.parametrize("key", [MAIN, CHILD, PEER])
def test_off_is_none_and_all_is_every_session(key: str) -> None:
    assert is_sandboxed("off", key, MAIN) is False
    assert is_sandboxed("all", key, MAIN) is True


def test_non_main_spares_the_main_session_alone() -> None:
    assert is_sandboxed("non-main", MAIN, MAIN) is False
    assert is_sandboxed("non-main", CHILD, MAIN) is True
    assert is_sandboxed("non-main", PEER, MAIN) is True


@pytest.mark.parametrize(
    ("session", "agent_id", "key", "sandboxed"),
    [
        ({}, "main", "agent:main:main", False),
        ({}, "worker", "agent:worker:main", False),
        ({}, "worker", "agent:main:main", True),
        ({"mainKey": "work"}, "main", "agent:main:work", False),
        ({"mainKey": "work"}, "main", "agent:main:main", True),
        ({"scope": "global"}, "worker", "global", False),
        ({"scope": "global"}, "main", "agent:main:main", True),
    ],
)
def test_each_agent_has_a_main_session_of_its_own(
    session: dict[str, str], agent_id: str, key: str, sandboxed: bool
) -> None:
    configuration = Configuration.model_validate(
        {"session": session, "agents": {"defaults": {"sandbox": {"mode": "non-main"}}}}
    )
    assert configuration.is_sandboxed(agent_id, key) is sandboxed


def test_a_sandboxed_requester_spawns_nobody_outside() -> None:
    refusal = sandbox_refusal(facts(child=False, requester=True, required=True))
    assert refusal is not None
    assert (refusal.rule, refusal.status) == ("sandbox", "forbidden")
    assert refusal.text == (
        "Sandboxed sessions cannot spawn unsandboxed subagents. Set a sandboxed target agent or "
        "use the same agent runtime."
    )


def test_a_sandbox_that_is_required_has_to_be_one() -> None:
    refusal = sandbox_refusal(facts(child=False, required=True))
    assert refusal is not None
    assert (refusal.rule, refusal.status) == ("sandbox", "forbidden")
    assert refusal.text == (
        'sessions_spawn sandbox="require" needs a sandboxed target runtime. Pick a sandboxed '
        'agentId or use sandbox="inherit".'
    )


def test_nothing_speaks_against_a_child_that_is_as_isolated_as_asked() -> None:
    assert sandbox_refusal(facts(child=False)) is None
    assert sandbox_refusal(facts(child=True, requester=True, required=True)) is None


def test_a_sandbox_that_nobody_provides_is_refused() -> None:
    refusal = missing_sandbox_refusal(facts(child=True), "builder")
    assert refusal is not None
    assert (refusal.rule, refusal.status) == ("sandbox", "error")
    assert refusal.text == (
        'Agent "builder" is to run in a sandbox (sandbox.mode "all"), and its runtime does not '
        "provide one. Set providesSandbox on a runtime that isolates itself, or sandbox.mode to "
        '"off".'
    )
    assert missing_sandbox_refusal(facts(child=True, provides=True), "builder") is None
    assert missing_sandbox_refusal(facts(child=False), "builder") is None
