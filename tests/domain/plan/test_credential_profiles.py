"""Which profiles of credentials a child is given."""

import pytest
from hypothesis import given as generated
from hypothesis import strategies as st

from domain.plan.credentials import (
    NO_PROFILES,
    AuthProfile,
    FoundProfile,
    ProfileFile,
    SkippedProfile,
    default_variable,
    merge_profiles,
    select_profiles,
)


def file(*profiles: AuthProfile, skipped: tuple[str, ...] = ()) -> ProfileFile:
    return ProfileFile(profiles, tuple(SkippedProfile(one, "why") for one in skipped))


def profile(profile_id: str, env_name: str = "OPENAI_API_KEY") -> AuthProfile:
    return AuthProfile(id=profile_id, env_name=env_name, variables=("X",))


def whose(found: tuple[FoundProfile, ...]) -> list[tuple[str, str]]:
    return [(one.profile.id, "own" if one.is_own else "main") for one in found]


@pytest.mark.parametrize(
    ("provider", "variable"),
    [
        ("openai", "OPENAI_API_KEY"),
        ("openai-codex", "OPENAI_CODEX_API_KEY"),
        (" Mistral.AI ", "MISTRAL_AI_API_KEY"),
        ("größe", "GR_SSE_API_KEY"),
    ],
)
def test_a_provider_has_a_variable(provider: str, variable: str) -> None:
    assert default_variable(provider) == variable


def test_the_main_agents_profiles_are_added_to_the_agents_own() -> None:
    found = merge_profiles(file(profile("a")), file(profile("b"), profile("c")))
    assert whose(found) == [("a", "own"), ("b", "main"), ("c", "main")]
    assert merge_profiles(NO_PROFILES, NO_PROFILES) == ()


def test_of_two_profiles_of_one_id_the_agents_own_counts() -> None:
    found = merge_profiles(file(profile("a", "OWN_KEY")), file(profile("a", "MAIN_KEY")))
    assert [(one.profile.env_name, one.is_own) for one in found] == [("OWN_KEY", True)]


def test_an_own_profile_that_is_skipped_hides_the_main_agents() -> None:
    assert merge_profiles(file(skipped=("a",)), file(profile("a"))) == ()


def test_for_one_variable_the_agents_own_comes_before_the_default_of_the_main_one() -> None:
    found = merge_profiles(file(profile("openai:z")), file(profile("openai:default")))
    assert whose(select_profiles(found, ())) == [("openai:z", "own")]


def test_for_one_variable_the_default_comes_before_the_alphabet() -> None:
    found = merge_profiles(
        file(profile("openai:b"), profile("openai:default"), profile("a")), NO_PROFILES
    )
    assert whose(select_profiles(found, ())) == [("openai:default", "own")]
    found = merge_profiles(file(profile("openai:b"), profile("openai:a")), NO_PROFILES)
    assert whose(select_profiles(found, ())) == [("openai:a", "own")]


def test_what_the_runtime_sets_itself_is_not_given() -> None:
    found = merge_profiles(file(profile("a", "A_KEY"), profile("b", "B_KEY")), NO_PROFILES)
    assert whose(select_profiles(found, {"A_KEY": "reference"})) == [("b", "own")]


IDS = st.sampled_from(["a", "b", "x:default", "y:default", "z"])
FILES = st.lists(
    st.builds(profile, IDS, st.sampled_from(["A_KEY", "B_KEY"])),
    unique_by=lambda one: one.id,
    max_size=5,
).map(lambda profiles: file(*profiles))


@generated(FILES, FILES)
def test_each_variable_is_given_once_and_by_the_agent_itself_where_it_can(
    own: ProfileFile, main: ProfileFile
) -> None:
    found = merge_profiles(own, main)
    chosen = select_profiles(found, ())
    names = [one.profile.env_name for one in chosen]
    assert names == sorted({one.profile.env_name for one in found})
    for one in chosen:
        assert one.is_own or one.profile.env_name not in {mine.env_name for mine in own.profiles}
