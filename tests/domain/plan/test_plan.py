"""The plan of a child."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from domain.configuration.agents import RUN_TIMEOUT_SECONDS_MAX, is_sandboxed
from domain.configuration.configuration import Configuration
from domain.configuration.models import ModelSettings
from domain.plan.credentials import (
    NO_PROFILES,
    AuthProfile,
    FoundProfile,
    ProfileFile,
    SkippedProfile,
    decides_program,
    default_variable,
    merge_profiles,
    select_profiles,
)
from domain.plan.model import UNNAMED_MODEL, ModelPlan, fallback_models, plan_model
from domain.plan.sandbox import missing_sandbox_refusal, sandbox_refusal
from domain.plan.thinking import ThinkingPlan, plan_thinking
from domain.plan.timeout import run_timeout_seconds, run_timeout_source, run_timeout_warnings
from domain.plan.tools import ToolPolicy, tool_policy
from domain.run.plan_facts import SandboxFacts
from domain.values.runtime_types import SandboxMode
from tests.domain.spawn.test_spawn_decision import PICK, Spawns
from tests.support.builders.configured_spawns import Rules
from tests.support.models.planned_places import SHAKEN, STATES
from tests.support.models.random_plans import PLANNING, WISHES
from tests.support.models.random_spawns import LENIENT, PLAIN
from tests.support.models.spawn_model import Asked
from tests.support.tiers import examples

# Thinking levels and their synonyms.


def test_first_that_is_given_decides() -> None:
    def plan(argument: str | None, agent: str | None, default: str | None) -> ThinkingPlan:
        return plan_thinking(
            argument=argument,
            agent_subagents=agent,
            defaults_subagents=default,
            caller_active="max",
        )

    assert plan("high", "low", "off") == ThinkingPlan("high", source="argument")
    assert plan(" ", "low", "off") == ThinkingPlan("low", source="agent_subagents")
    assert plan(None, None, "off") == ThinkingPlan("off", source="defaults_subagents")
    assert plan(None, None, None) == ThinkingPlan("max", source="caller")


@settings(deadline=None)
@given(st.text(max_size=300))
def test_any_word_is_answered_on_one_line(raw: str) -> None:
    error = plan_thinking(argument=raw, agent_subagents=None, defaults_subagents=None).error
    assert error is None or len(error.splitlines()) == 1


# How long a run may take.


@pytest.mark.parametrize(
    ("argument", "configured", "seconds"),
    [
        (0, 600, 0),
        ("30", 600, 600),
        (float("nan"), 7.9, 7),
        (float("inf"), None, 0),
        (10**400, None, RUN_TIMEOUT_SECONDS_MAX),
    ],
)
def test_first_finite_number_counts_rounded_down(
    argument: object, configured: object, seconds: int
) -> None:
    assert run_timeout_seconds(argument, configured) == seconds


@pytest.mark.parametrize(
    ("argument", "source"),
    [
        (0, "argument"),
        (-5, "argument"),
        (10**400, "argument"),
        (None, "defaults"),
        (float("nan"), "defaults"),
        (True, "defaults"),
    ],
)
def test_it_is_known_whose_number_it_is(argument: object, source: str) -> None:
    assert run_timeout_source(argument) == source


@pytest.mark.parametrize(
    ("argument", "configured", "warned"),
    [
        (None, None, False),
        (RUN_TIMEOUT_SECONDS_MAX, None, False),
        (RUN_TIMEOUT_SECONDS_MAX + 0.9, None, False),
        (RUN_TIMEOUT_SECONDS_MAX + 1, None, True),
        (10**400, 5, True),
        (5, 10**9, False),
        (None, 10**9, True),
        (float("inf"), 10**9, True),
    ],
)
def test_time_limit_beyond_the_longest_is_warned(
    argument: object, configured: object, warned: bool
) -> None:
    warnings = run_timeout_warnings(argument, configured)
    assert len(warnings) == warned
    assert all(str(RUN_TIMEOUT_SECONDS_MAX) in warning for warning in warnings)


@pytest.mark.parametrize(
    ("argument", "shown"), [(-5, "-5"), (0.5, "0.5"), (-(10**20), "that"), (0, None), (1, None)]
)
def test_time_limit_below_one_second_is_told_to_be_none(
    argument: object, shown: str | None
) -> None:
    assert run_timeout_warnings(argument) == (
        ()
        if shown is None
        else (
            f"runTimeoutSeconds {shown} was rounded down to 0, which means no limit. Request 1"
            " or more for a limit.",
        )
    )


# Sandboxed sessions, and the children that they may spawn.


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


@pytest.mark.parametrize(
    ("mode", "is_main_boxed", "is_other_boxed"),
    [("off", False, False), ("non-main", False, True), ("all", True, True)],
)
def test_mode_puts_sessions_into_a_sandbox(
    mode: SandboxMode, is_main_boxed: bool, is_other_boxed: bool
) -> None:
    main = "agent:main:main"
    assert is_sandboxed(mode, main, main) is is_main_boxed
    assert is_sandboxed(mode, "agent:main:mail:direct:someone", main) is is_other_boxed


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


@pytest.mark.parametrize(
    ("requester", "text"),
    [
        (
            True,
            "Sandboxed sessions cannot spawn unsandboxed subagents. Set a sandboxed target agent or"
            " use the same agent runtime.",
        ),
        (
            False,
            'sessions_spawn sandbox="require" needs a sandboxed target runtime. Pick a sandboxed'
            ' agentId or use sandbox="inherit".',
        ),
    ],
)
def test_child_outside_of_a_sandbox_is_refused(requester: bool, text: str) -> None:
    refusal = sandbox_refusal(facts(child=False, requester=requester, required=True))
    assert refusal is not None
    assert (refusal.rule, refusal.status, refusal.text) == ("sandbox", "forbidden", text)
    assert sandbox_refusal(facts(child=True, requester=requester, required=True)) is None


def test_sandbox_that_nobody_provides_is_refused() -> None:
    refusal = missing_sandbox_refusal(facts(child=True), "builder")
    assert refusal is not None
    assert (refusal.rule, refusal.status) == ("sandbox", "error")
    assert refusal.text == (
        'Agent "builder" must run in a sandbox (sandbox.mode "all"), but its runtime does not'
        " provide one. Set providesSandbox on a runtime that isolates itself, or sandbox.mode"
        ' to "off".'
    )
    assert missing_sandbox_refusal(facts(child=True, provides=True), "builder") is None
    assert missing_sandbox_refusal(facts(child=False), "builder") is None


# Which tools a child may use.


def test_leaf_is_denied_more_tools_than_an_orchestrator() -> None:
    leaf, orchestrator = tool_policy("leaf"), tool_policy("orchestrator")
    for tool in ("sessions_spawn", "sessions_list", "sessions_history", "subagents"):
        assert (leaf.permits(tool), orchestrator.permits(tool)) == (False, True)
    for tool in ("sessions_send", "gateway", "agents_list", "session_status", "cron"):
        assert (leaf.permits(tool), orchestrator.permits(tool)) == (False, False)


def test_tools_have_aliases_and_patches_are_writes() -> None:
    assert not tool_policy("leaf", deny=["Bash"]).permits("exec")
    assert not tool_policy("leaf", deny=["write"]).permits("apply_patch")
    assert tool_policy("leaf", allow=["write"]).permits("apply-patch")


@pytest.mark.parametrize(
    ("group", "tool"),
    [
        ("group:sessions", "sessions_yield"),
        ("group:runtime", "process"),
        ("group:web", "web_fetch"),
        ("group:memory", "memory_get"),
        ("group:ui", "canvas"),
        ("group:automation", "gateway"),
        ("group:messaging", "message"),
        ("group:nodes", "nodes"),
        ("group:agents", "agents_list"),
    ],
)
def test_group_stands_for_its_tools(group: str, tool: str) -> None:
    assert not tool_policy("orchestrator", deny=[group]).permits(tool)
    assert tool_policy("orchestrator", allow=[group], deny=[]).permits(tool)
    assert not tool_policy("orchestrator", allow=[group], deny=[]).permits("read")


@pytest.mark.parametrize(
    ("pattern", "tool", "matches"),
    [
        ("*", "anything", True),
        ("web_*", "web_fetch", True),
        ("web_*", "xweb_", False),
        ("*_x", "a_x", True),
        ("a*b*c", "axxbyyc", True),
        ("a*b*c", "acb", False),
        ("a*a", "a", False),
        ("a*a", "aa", True),
        ("a.c", "abc", False),
        ("*a" * 500, "a" * 400, False),
    ],
)
def test_star_stands_for_any_text(pattern: str, tool: str, matches: bool) -> None:
    assert ToolPolicy(allow=None, deny=(pattern,)).permits(tool) is not matches


# Which profiles of credentials a child is given.


def file(*profiles: AuthProfile, skipped: tuple[str, ...] = ()) -> ProfileFile:
    return ProfileFile(profiles, tuple(SkippedProfile(item, "why") for item in skipped))


def profile(profile_id: str, env_name: str = "OPENAI_API_KEY") -> AuthProfile:
    return AuthProfile(id=profile_id, env_name=env_name, variables=("X",))


def whose(found: tuple[FoundProfile, ...]) -> list[tuple[str, str]]:
    return [(item.profile.id, "own" if item.is_own else "main") for item in found]


@pytest.mark.parametrize(
    ("provider", "variable"),
    [
        ("openai", "OPENAI_API_KEY"),
        ("openai-codex", "OPENAI_CODEX_API_KEY"),
        (" Mistral.AI ", "MISTRAL_AI_API_KEY"),
        ("größe", "GR_SSE_API_KEY"),
    ],
)
def test_provider_has_a_variable(provider: str, variable: str) -> None:
    assert default_variable(provider) == variable


def test_skipped_own_profile_hides_the_main_agents() -> None:
    assert merge_profiles(file(skipped=("a",)), file(profile("a"))) == ()


def test_own_profile_precedes_default_of_main_agent() -> None:
    found = merge_profiles(file(profile("openai:z")), file(profile("openai:default")))
    assert whose(select_profiles(found, ())) == [("openai:z", "own")]


def test_for_one_variable_the_default_comes_before_the_alphabet() -> None:
    found = merge_profiles(
        file(profile("openai:b"), profile("openai:default"), profile("a")), NO_PROFILES
    )
    assert whose(select_profiles(found, ())) == [("openai:default", "own")]
    found = merge_profiles(file(profile("openai:b"), profile("openai:a")), NO_PROFILES)
    assert whose(select_profiles(found, ())) == [("openai:a", "own")]


IDS = st.sampled_from(["a", "b", "x:default", "y:default", "z"])

FILES = st.lists(
    st.builds(profile, IDS, st.sampled_from(["A_KEY", "B_KEY"])),
    unique_by=lambda build: build.id,
    max_size=5,
).map(lambda profiles: file(*profiles))


@given(FILES, FILES)
def test_each_variable_has_one_profile_own_first(own: ProfileFile, main: ProfileFile) -> None:
    found = merge_profiles(own, main)
    chosen = select_profiles(found, ())
    names = [item.profile.env_name for item in chosen]
    assert names == sorted({item.profile.env_name for item in found})
    for build in chosen:
        assert build.is_own or build.profile.env_name not in {
            mine.env_name for mine in own.profiles
        }


# Random spawns under random configurations, at any depth, with changes, stops and lost holders
# between them: each child's plan, or the rule that refuses it, equals that of a simple model.


NEAR = st.sampled_from([0, 1, 2, 3, -1, -1]) | PICK

STEPS = st.sampled_from([2, 2, 2, 4, 0])


class Plans(Spawns):
    """The same trees. Admission lets nearly all pass, and most are prepared at once."""

    @initialize(first=PLANNING)
    def begin(self, first: Rules) -> None:
        self._begin(LENIENT)
        self.reload(first)

    @rule(rules=PLANNING)
    def reload(self, rules: Rules) -> None:
        self._reload(rules)

    @rule(pick=NEAR, request=WISHES, steps=STEPS)
    def spawn(self, pick: int, request: Asked, steps: int) -> None:
        self._ask(self.model.requesters(), pick, request, steps)

    def _ask(self, names: list[str], pick: int, request: Asked, steps: int) -> None:
        self._spawn(names[-1 - pick % len(names)], request)
        if self.model.tree.lives:
            self.advance(0, steps)

    @rule(more=st.lists(st.tuples(NEAR, WISHES, STEPS), min_size=2, max_size=6))
    def spawn_many(self, more: list[tuple[int, Asked, int]]) -> None:
        for pick, request, steps in more:
            self.spawn(pick, request, steps)

    @rule(state=st.sampled_from(STATES), pick=NEAR, request=st.just(PLAIN) | WISHES)
    def move_folders(self, state: str, pick: int, request: Asked) -> None:
        """Move folders, then spawn from a session that works in one of them."""
        self.model.places.put(state)
        self.disk.put(state)
        names = [name for name in self.model.requesters() if self._works_there(name)]
        self._ask(names or self.model.requesters(), pick, request, 2)

    def _works_there(self, name: str) -> bool:
        folder = self.model.seen[name].folder if name in self.model.seen else None
        return SHAKEN in (folder or "") and self.model.closed(name) is None


TestPlans = pytest.mark.timeout(400)(pytest.mark.long(Plans.TestCase))

TestPlans.settings = examples(40, stateful_step_count=40)


@pytest.mark.parametrize(
    ("variable", "decides"),
    [("PATH", True), ("LD_PRELOAD", True), ("ACME_API_KEY", False), ("OLD_KEY", False)],
)
def test_variables_that_decide_the_program(variable: str, decides: bool) -> None:
    assert decides_program(variable) == decides


# Which model a child runs with.

PLACES = ("argument", "agent_subagents", "defaults_subagents", "caller", "agent", "defaults")


def verdicts(plan: ModelPlan) -> list[tuple[str, str | None, str]]:
    return [
        (verdict_line.source, verdict_line.reference, verdict_line.verdict)
        for verdict_line in plan.verdicts
    ]


def settings_of(named: dict[str, str]) -> ModelSettings:
    return ModelSettings(
        argument=named.get("argument"),
        agent_subagents=named.get("agent_subagents"),
        defaults_subagents=named.get("defaults_subagents"),
        caller=named.get("caller"),
        agent=named.get("agent"),
        defaults=named.get("defaults"),
    )


@pytest.mark.parametrize("first", range(len(PLACES)))
def test_places_count_in_order(first: int) -> None:
    plan = plan_model(settings_of({place: f"p/{place}" for place in PLACES[first:]}))
    assert (plan.provider, plan.model) == ("p", PLACES[first])
    assert (plan.source, plan.applied, plan.warnings) == (PLACES[first], True, ())
    assert plan.reference == f"p/{PLACES[first]}"
    later = [(place, f"p/{place}", "not_reached") for place in PLACES[first + 1 :]]
    assert verdicts(plan) == [(PLACES[first], f"p/{PLACES[first]}", "taken"), *later]


def test_model_with_an_unset_variable_is_skipped_with_a_warning() -> None:
    plan = plan_model(settings_of({"agent_subagents": "${LEAD_MODEL}", "defaults": "acme/small"}))
    assert (plan.reference, plan.applied) == ("acme/small", False)
    assert plan.warnings == (
        'Model "${LEAD_MODEL}" from the agent\'s subagents.model refers to a variable that was'
        " not set when the configuration was read and was skipped; running on acme/small.",
    )


def test_object_names_its_primary() -> None:
    setting = {"primary": "minimax/MiniMax-M2.7", "fallbacks": ["a/b"]}
    assert plan_model(ModelSettings(defaults=setting)).reference == "minimax/MiniMax-M2.7"
    only_fallbacks = {"fallbacks": ["a/b"]}
    assert plan_model(ModelSettings(agent=only_fallbacks, defaults="c/d")).reference == "c/d"


def test_unserved_model_is_skipped_with_a_warning() -> None:
    settings = ModelSettings(argument="a/big", agent="b/small")
    plan = plan_model(settings, served={"b/small"})
    assert (plan.reference, plan.source, plan.applied) == ("b/small", "agent", False)
    assert plan.warnings == (
        'Model "a/big" from the model argument is not served by the agent\'s runtime and was '
        "skipped; running on b/small.",
    )
    assert verdicts(plan) == [("argument", "a/big", "not_served"), ("agent", "b/small", "taken")]


def test_invalid_model_argument_counts_as_skipped() -> None:
    plan = plan_model(ModelSettings(unnamed_argument=True, defaults="c/d"))
    assert (plan.reference, plan.source, plan.applied) == ("c/d", "defaults", False)
    assert plan.warnings == (UNNAMED_MODEL,)
    assert verdicts(plan)[0] == ("argument", None, "no_name")
    alone = plan_model(ModelSettings(unnamed_argument=True))
    assert (alone.reference, alone.source, alone.applied) == (None, "runtime", False)


def test_when_nothing_can_be_served_the_runtime_chooses() -> None:
    plan = plan_model(ModelSettings(argument="a/b", defaults="c/d"), served=set())
    assert (plan.reference, plan.source, plan.applied, len(plan.warnings)) == (
        None,
        "runtime",
        False,
        2,
    )
    assert plan.warnings[1] == (
        'Model "c/d" from agents.defaults.model is not served by the agent\'s runtime and was '
        "skipped; running on the runtime's own default."
    )


@pytest.mark.parametrize(
    ("served", "reference", "is_served"),
    [
        ("claude", "anthropic/claude", True),
        ("anthropic/claude", "other/claude", False),
        ("anthropic/*", "other/any", False),
        ("*", "other/any", True),
        ("any", "any", True),
        ("openrouter/anthropic/*", "openrouter/anthropic/any/more", True),
        ("openrouter/anthropic/*", "openrouter/anthropic", False),
        ("@cf/meta/*", "@cf/meta/llama", True),
        ("/x", "/y", False),
    ],
)
def test_what_a_runtime_declares_may_leave_things_open(
    served: str, reference: str, is_served: bool
) -> None:
    plan = plan_model(ModelSettings(argument=reference), served=[served])
    assert plan.applied is is_served


def test_bare_model_name_is_served_by_its_listed_provider() -> None:
    known = ("q/good", "p/good", "openrouter/p/deep", "p/other")
    for served, name, is_served in (
        ("p/*", "good", True),
        ("r/*", "good", False),
        ("p/*", "bad-model", False),
        ("openrouter/*", "p/deep", False),
    ):
        plan = plan_model(ModelSettings(argument=name), served=[served], known=known)
        assert plan.applied is is_served, (served, name)
        assert plan.reference == (name if is_served else None)
        assert [name in warning for warning in plan.warnings] == ([] if is_served else [True])


@pytest.mark.parametrize("name", ["a\nb", "x" * 300, "a/\x1b[31m"])
def test_what_is_no_name_is_skipped(name: str) -> None:
    plan = plan_model(ModelSettings(argument=name, defaults="c/d"))
    assert (plan.reference, plan.applied) == ("c/d", False)
    assert all(warning.isprintable() and len(warning) < 500 for warning in plan.warnings)
    assert verdicts(plan)[0] == ("argument", None, "no_name")


# Fallbacks of the chosen model.

CHOICE = {"primary": "p/one", "fallbacks": ["two", "q/three", "p/one", "q/three", "not a name"]}

ALIASES = {"two": "p/two"}


def test_fallbacks_after_the_taken_model_stand_in_once() -> None:
    settings = ModelSettings(agent_subagents=CHOICE, defaults={"primary": "d/other"})
    found = fallback_models(settings, source="agent_subagents", taken="p/one", aliases=ALIASES)
    assert found == ("p/two", "q/three")


def test_unconfigured_model_has_no_fallbacks() -> None:
    settings = ModelSettings(agent_subagents=CHOICE)
    assert fallback_models(settings, source="agent_subagents", taken="p/gone") == ()
    assert fallback_models(settings, source="runtime", taken=None) == ()
