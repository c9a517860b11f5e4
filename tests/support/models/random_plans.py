"""Random configurations and requests that differ in plans; admission permits nearly all of them."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from tests.support.builders.configured_spawns import Rules, Word
from tests.support.models import plan_words, planned_places
from tests.support.models import spawn_words as words
from tests.support.models.spawn_model import Asked

SECONDS_MAX = plan_words.SECONDS_MAX
AGENTS = ("main", "ops", "worker", "team-1")
CHOICES = (
    *plan_words.MODELS,
    *plan_words.ODD,
    " p/small ",
    "",
    ("q/fast", "p/small"),
    (*plan_words.ODD, "Quick"),
    ("", "p/big"),
    ("größe/x", " ", "/lead", "solo"),
)
FOLDERS = (*["places/a"] * 5, "places/a/deep", "places/b", "new/one", planned_places.FILE)
FIT = (
    ("off", None),
    ("off", "nested"),
    ("all", "boxed"),
    ("non-main", "boxed few"),
    ("non-main", "p"),
    (None, "p"),
    (None, "all"),
    (None, "nested"),
    (None, "nothing"),
)


"""A sandbox mode and a runtime that fit together."""


UNFIT = (
    ("all", "plain"),
    ("all", "worker"),
    (None, "worker"),
    (None, "model"),
    (None, "embedded"),
    ("off", "acp"),
)


def seldom(values: Sequence[Any], often: int = 2, plain: Any = None) -> st.SearchStrategy[Any]:
    """Return a strategy that draws `plain` more often than the values, by this factor."""
    return st.sampled_from([plain] * often * len(values) + [*values])


def word(ways: st.SearchStrategy[tuple[str | None, str | None]]) -> st.SearchStrategy[Word]:
    """Return a strategy for a section; `ways` are sandbox modes with runtimes."""
    levels = [*words.THINKING, " "] * 3 + [*words.NO_THINKING]
    return st.builds(
        lambda way, **values: Word(sandbox=way[0], runtime=way[1], **values),
        ways,
        allow=st.just(("*",)),
        thinking=seldom(levels),
        children_model=seldom(CHOICES),
        model=seldom(CHOICES, 1),
        workspace=seldom(FOLDERS, 1),
    )


OWN = word(st.sampled_from([(None, None)] * 18 + [*FIT, *UNFIT]))
DEFAULTS = word(
    st.sampled_from(
        [(None, "plain")] * 6
        + [*FIT[2:]] * 2
        + [("non-main", None), ("all", "plain"), (None, None)]
    )
)
PLANNING = st.builds(
    Rules,
    depth=st.sampled_from([5, 5, 3]),
    children=st.just(20),
    defaults=DEFAULTS,
    agents=st.fixed_dictionaries(
        {"main": OWN, "worker": OWN, "ops": OWN}, optional={"team-1": OWN}
    ),
    seconds=st.sampled_from([0, 0, 45, SECONDS_MAX, SECONDS_MAX + 1]),
    minutes=st.sampled_from([0, 60]),
    marked=st.sampled_from([None, *AGENTS]),
    aliases=st.sampled_from(plan_words.ALIASES),
    roots=st.sampled_from([(), ("places",), ("places", "elsewhere"), ("places/b", "link")]),
    main_key=st.sampled_from(["main", "home"]),
    tools=st.sampled_from([*plan_words.TOOLS]),
    prices=st.booleans(),
)
WISHES = st.builds(
    Asked,
    agent_id=st.sampled_from([None] * 8 + ["worker", "OPS", "main"] * 2 + ["team-1", "ghost"]),
    thinking=seldom([*words.THINKING] * 3 + [*words.NO_THINKING]),
    model=seldom((*plan_words.MODELS, *plan_words.FREE_TEXT), 1),
    seconds=seldom((0.0, -4.0, 0.9, 30.0, 2.9, SECONDS_MAX + 0.5, SECONDS_MAX + 1.0, 1e12), 1),
    sandbox=seldom(("require",), 9, "inherit"),
    poses_as=seldom(("main", "worker", "ops", "ghost"), 3),
    is_boxed=seldom((True,), 19, False),
    folder=seldom(planned_places.NAMED, 2),
    active_model=seldom(("p/big", "solo", "Quick", "q/fast")),
    active_thinking=seldom(("high", "Ultra", "deep")),
)
