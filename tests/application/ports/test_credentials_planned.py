"""A child whose agent's credentials cannot be had is refused before anything is made for it."""

from pathlib import Path

import pytest

from domain.plan.credentials import FoundCredentials, MissingCredential
from domain.run.plan_facts import CredentialFacts
from tests.support.builders.planned_children import (
    SCRIPTED,
    Workspaces,
    asked,
    configuration,
    decided,
    plan_of,
    unfit,
)

UNSET = MissingCredential("LARGE_API_KEY", "LARGE_API_KEY is not set", is_unset=True)
LOST = MissingCredential("a:b", 'profile "a:b" is in a file that is not there')


@pytest.fixture
def workspaces(tmp_path: Path) -> Workspaces:
    return Workspaces(tmp_path)


def test_the_plan_names_the_profiles_that_are_given(workspaces: Workspaces) -> None:
    credentials = FoundCredentials(("a:default", "b:default"), given=("b:default",))
    made = plan_of(workspaces, asked(), configuration({"id": "main"}), credentials=credentials)
    assert made.plan.auth_profiles == ("b:default",)
    assert made.facts.credentials == CredentialFacts(profile_ids=("a:default", "b:default"))


def test_without_any_the_record_says_that_there_are_none(workspaces: Workspaces) -> None:
    made = plan_of(workspaces, asked(), configuration({"id": "main"}))
    assert made.plan.auth_profiles == ()
    assert made.facts.credentials == CredentialFacts(profile_ids=())


@pytest.mark.parametrize(
    ("missing", "told"),
    [
        ((UNSET,), "LARGE_API_KEY is not set. Set it in the environment of every server"),
        ((LOST,), 'profile "a:b" is in a file that is not there. Mend it on every server'),
        (
            (UNSET, LOST, UNSET),
            'LARGE_API_KEY is not set; profile "a:b" is in a file that is not there. Mend them on'
            " every server",
        ),
    ],
)
def test_what_cannot_be_had_refuses_and_says_what_to_do(
    workspaces: Workspaces, missing: tuple[MissingCredential, ...], told: str
) -> None:
    credentials = FoundCredentials(("a:b",), ("a:b",), missing)
    refused = unfit(workspaces, asked(), configuration({"id": "main"}), credentials=credentials)
    assert (refused.refusal.rule, refused.refusal.status) == ("credentials", "error")
    assert refused.refusal.text == (
        f'The credentials of agent "main" cannot be had: {told}, or name another agent.'
    )
    assert refused.facts.credentials == CredentialFacts(
        profile_ids=("a:b",), missing=tuple(dict.fromkeys(one.name for one in missing))
    )
    assert workspaces.asked == []


def test_many_that_are_missing_are_counted(workspaces: Workspaces) -> None:
    missing = tuple(MissingCredential(f"K{n}", f"K{n} is not set", True) for n in range(60))
    refused = unfit(
        workspaces,
        asked(),
        configuration({"id": "main"}),
        credentials=FoundCredentials(missing=missing),
    )
    assert "K4 is not set; and 55 more. Set them in" in refused.refusal.text
    assert refused.facts.credentials is not None
    assert len(refused.facts.credentials.missing) == 50


def test_the_runtime_is_judged_before_and_the_folder_behind(workspaces: Workspaces) -> None:
    credentials = FoundCredentials(missing=(UNSET,))
    workspaces.unusable = PermissionError(13, "Permission denied")
    worker = configuration({"id": "main", "runtime": {"type": "worker", "queue": "q"}})
    refused = unfit(workspaces, asked(), worker, credentials=credentials)
    assert (refused.refusal.rule, refused.facts.credentials) == ("runtime", None)
    plain = configuration({"id": "main", "runtime": SCRIPTED})
    refused = unfit(workspaces, asked(), plain, credentials=credentials)
    assert refused.refusal.rule == "credentials"
    assert unfit(workspaces, asked(), plain).refusal.rule == "workspace"
    workspaces.unusable = None
    assert not isinstance(decided(workspaces, asked(), plain), type(refused))
