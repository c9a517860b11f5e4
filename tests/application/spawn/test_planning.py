"""Plans where no model of `tests/domain` applies: credentials, order of rules, kept frames, model
names, attachments.
"""

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from application.log.envelope import SYSTEM
from application.ports.configurations import PinnedConfiguration
from application.ports.files import WorkspaceForbiddenError
from application.spawn.attachments import evaluate_attachments
from application.spawn.request import spawn_command
from domain.configuration.configuration import Configuration
from domain.plan.child import PlannedChild, RefusedChild, plan_with_hours
from domain.plan.credentials import FoundCredentials, MissingCredential
from domain.run.facts import Plan
from domain.run.plan_facts import CredentialFacts, PlanFacts, WorkspaceFacts
from domain.spawn import pipeline
from domain.spawn.request import SpawnRequest
from infrastructure.outbound.identity.identifiers import RandomIdentities
from tests.support.builders.planned_children import (
    BOXED,
    SCRIPTED,
    Workspaces,
    asked,
    configuration,
    decided,
    plan_of,
    unfit,
)
from tests.support.builders.spawn_plans import resolved_spawn
from world.model.log_invariants import stored_and_read

Planned = Callable[..., PlannedChild]

Refuse = Callable[..., RefusedChild]

MAIN = configuration({"id": "main"})

UNSET = MissingCredential("LARGE_API_KEY", "LARGE_API_KEY is not set", is_unset=True)

LOST = MissingCredential("a:b", 'profile "a:b" is in a file that does not exist')


@pytest.fixture
def workspaces(tmp_path: Path) -> Workspaces:
    return Workspaces(tmp_path)


@pytest.fixture
def plan(workspaces: Workspaces) -> Planned:
    return partial(plan_of, workspaces)


@pytest.fixture
def refuse(workspaces: Workspaces) -> Refuse:
    return partial(unfit, workspaces)


def test_rules_refuse_in_their_order(refuse: Refuse, workspaces: Workspaces) -> None:
    """Fixes one fault after the other; each time the next rule refuses."""
    agent: dict[str, Any] = {"id": "helper", **BOXED, "subagents": {"thinking": "banana"}}
    agent["runtime"] = {"type": "worker", "queue": "q"}
    workspaces.unusable = PermissionError(13, "Permission denied")
    missing = FoundCredentials(missing=(UNSET,))
    refused: list[RefusedChild] = []
    steps: list[dict[str, Any]] = [
        {},
        {"id": "worker"},
        {"sandbox": {"mode": "off"}},
        {"subagents": {"thinking": "low"}},
        {"runtime": SCRIPTED},
    ]
    for step in steps:
        agent |= step
        refused.append(refuse(asked("worker"), configuration(agent), credentials=missing))
    assert workspaces.asked == []
    refused.append(refuse(asked("worker"), configuration(agent)))
    rules = ["agent_unknown", "sandbox", "thinking", "runtime", "credentials", "workspace"]
    assert [item.refusal.rule for item in refused] == rules
    assert len(workspaces.asked) == 1
    assert refused[0].facts == PlanFacts(agent_configured=False)
    # Facts of rules after the refusal were not looked up.
    assert [item.facts.runtime is not None for item in refused] == [False] * 3 + [True] * 3
    assert [item.facts.credentials is not None for item in refused] == [False] * 4 + [True] * 2
    workspaces.unusable = None
    assert isinstance(decided(workspaces, asked("worker"), configuration(agent)), PlannedChild)


def test_forbidden_folder_refuses_in_its_own_words(refuse: Refuse, workspaces: Workspaces) -> None:
    workspaces.unusable = WorkspaceForbiddenError("not below a root")
    refused = refuse(asked(), MAIN, workspace="/etc")
    assert (refused.refusal.rule, refused.refusal.text) == ("workspace", "not below a root")
    assert refused.facts.workspace == WorkspaceFacts(source="requester", recorded=None)


def test_dropped_folder_and_model_are_both_warned_of(plan: Planned) -> None:
    configured = configuration({"id": "helper", "runtime": {**SCRIPTED, "models": ["p/*"]}})
    run = asked("helper", options={"model": "q/big"})
    model, folder = plan(run, configured, workspace="/w/asked").warnings
    assert model.startswith('Model "q/big"')
    assert folder.startswith("The workspaceDir of the request was not used")
    assert plan(asked(), MAIN, workspace="/w").warnings == ()


def test_requests_of_one_shape_share_a_frame(plan: Planned, workspaces: Workspaces) -> None:
    frames = cast("Any", pipeline)._kept_frame
    frames.cache_clear()
    first = plan(asked(label="one"), MAIN)
    inherits = {"workspace_dir": str(workspaces.folder)}
    second = plan(asked(asks=inherits, label="two"), MAIN)
    assert (frames.cache_info().misses, frames.cache_info().hits) == (1, 1)
    assert second.facts.changed({"workspace": None}) == first.facts.changed({"workspace": None})
    assert second.plan.workspace_source == "requester" != first.plan.workspace_source
    plan(asked(options={"run_timeout_seconds": 5.0}), MAIN)
    plan(asked(asks={"model": "p/other"}), MAIN)
    plan(asked(), configuration({"id": "main", "model": "p/m"}))
    assert frames.cache_info().misses == 4


def test_erasable_text_is_in_no_frame_and_no_fact(refuse: Refuse) -> None:
    frames = cast("Any", pipeline)._kept_frame
    frames.cache_clear()
    refused = refuse(asked(), MAIN, thinking="banana")
    assert '"banana"' in refused.refusal.text
    assert "banana" not in refused.facts.to_json().decode()
    assert frames.cache_info().currsize == 0


def test_plan_without_any_model_is_read_back_from_a_row(plan: Planned) -> None:
    """Rows omit None."""
    made = plan(asked(), MAIN).plan
    assert (made.model, made.model_applied) == (None, None)
    assert Plan.from_json(made.to_json().decode()) == made


def test_whole_number_of_a_file_is_recorded_as_float(plan: Planned) -> None:
    model = {"id": "m", "cost": {"input": 3, "output": 15}}
    given = Configuration.model_validate(
        {
            "agents": {"list": [{"id": "main", "model": "p/m"}], "defaults": {"runtime": SCRIPTED}},
            "models": {"providers": {"p": {"models": [model]}}},
            "session": {"threadBindings": {"idleHours": 2, "maxAgeHours": 24}},
        }
    )
    run = asked(options={"mode": "session"})
    planned = plan_with_hours(plan(run, given).plan, run, given)
    assert (planned.cost_input_usd_per_million, planned.max_age_hours) == (3, 24)
    assert stored_and_read(planned) == planned


def test_plan_names_the_profiles_that_are_given(plan: Planned) -> None:
    for found, given in (((), ()), (("a:default", "b:default"), ("b:default",))):
        made = plan(asked(), MAIN, credentials=FoundCredentials(found, given=given))
        assert made.plan.auth_profiles == given
        assert made.facts.credentials == CredentialFacts(profile_ids=found)


MANY = tuple(MissingCredential(f"K{n}", f"K{n} is not set", True) for n in range(60))


@pytest.mark.parametrize(
    ("missing", "message", "recorded"),
    [
        ((UNSET,), "LARGE_API_KEY is not set. Set it in the environment of every server", 1),
        ((LOST,), 'profile "a:b" is in a file that does not exist. Fix it on every server', 1),
        (
            (UNSET, LOST, UNSET),
            'LARGE_API_KEY is not set; profile "a:b" is in a file that does not exist. Fix them on'
            " every server",
            2,
        ),
        (
            MANY,
            "K0 is not set; K1 is not set; K2 is not set; K3 is not set; K4 is not set; and 55"
            " more. Set them in the environment of every server",
            50,
        ),
    ],
    ids=["unset", "lost", "both", "many"],
)
def test_missing_credentials_refuse_and_say_what_to_do(
    refuse: Refuse, missing: tuple[MissingCredential, ...], message: str, recorded: int
) -> None:
    refused = refuse(asked(), MAIN, credentials=FoundCredentials(("a:b",), ("a:b",), missing))
    assert (refused.refusal.rule, refused.refusal.status) == ("credentials", "error")
    assert refused.refusal.text == (
        f'The credentials of agent "main" are unavailable: {message}, or name another agent.'
    )
    names = tuple(dict.fromkeys(item.name for item in missing))[:50]
    assert len(names) == recorded
    assert refused.facts.credentials == CredentialFacts(profile_ids=("a:b",), missing=names)


MODELS: dict[str, Any] = {"anthropic/claude": {"alias": " My Claude "}, "p/opus": {"alias": "opus"}}


@pytest.mark.parametrize(
    ("model", "kept", "beside_the_log"),
    [
        (" My CLAUDE\t", "anthropic/claude", None),
        (None, None, None),
        ("the good one, please", None, "the good one, please"),
    ],
)
def test_model_text_is_kept_beside_the_log(
    model: str | None, kept: str | None, beside_the_log: str | None
) -> None:
    """An alias of another form is recorded as the model that it names."""
    configured = Configuration.model_validate({"agents": {"defaults": {"models": MODELS}}})
    pinned = PinnedConfiguration(1, configured, {})
    asked_for = resolved_spawn(model=model)
    command = spawn_command(asked_for, SYSTEM, pinned, RandomIdentities(), "here")
    assert (command.options.model, command.model_argument) == (kept, beside_the_log)


SECONDS = 10.0

THREADS = 40

"""More threads than the event loop has."""


def request_with(files: int) -> SpawnRequest:
    attached = [{"name": f"{number}.txt", "content": "x"} for number in range(files)]
    return resolved_spawn(attachments=attached).request


def configured(*, enabled: bool) -> Configuration:
    values = {"sessions_spawn": {"attachments": {"enabled": enabled, "maxFiles": 2}}}
    return Configuration.model_validate({"tools": values})


@pytest.mark.parametrize(
    ("enabled", "status", "text"),
    [
        (False, "forbidden", "attachments are disabled for sessions_spawn"),
        (True, "error", "attachments_file_count_exceeded (maxFiles=2)"),
    ],
)
async def test_unread_attachments_take_no_thread(enabled: bool, status: str, text: str) -> None:
    go_on = threading.Event()
    others = [asyncio.create_task(asyncio.to_thread(go_on.wait, SECONDS)) for _ in range(THREADS)]
    try:
        judged = await asyncio.wait_for(
            evaluate_attachments(request_with(3), configured(enabled=enabled)), SECONDS / 5
        )
    finally:
        go_on.set()
        await asyncio.gather(*others)
    assert judged is not None
    assert judged.bodies == ()
    assert (judged.verdict.count, judged.verdict.refusal_status) == (3, status)
    assert (judged.verdict.refusal or "").startswith(text)
