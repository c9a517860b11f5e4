"""Random configurations and requests for spawns, often plain enough to be admitted."""

from typing import Any

from hypothesis import strategies as st

from tests.support.builders.configured_spawns import Rules, Word
from tests.support.models import spawn_words as words
from tests.support.models.spawn_model import Asked

THINKING = st.none() | st.sampled_from([*words.THINKING, *words.NO_THINKING])
MAY: dict[str, st.SearchStrategy[Any]] = {
    "allow": st.sampled_from([None, ("*",), *words.ALLOW_LISTS]),
    "require": st.sampled_from([None, None, False, True]),
    "thinking": st.none() | THINKING,
}
WORDS = st.builds(Word, **MAY)
LENIENT = Rules(
    4, 3, Word(allow=("*",), runtime="plain"), {name: Word() for name in ("main", "ops", "worker")}
)
RULES = st.just(LENIENT) | st.builds(
    Rules,
    depth=st.integers(1, 4),
    children=st.integers(1, 3),
    defaults=st.builds(Word, **MAY, runtime=st.just("plain")),
    agents=st.fixed_dictionaries(
        {"main": WORDS}, optional=dict.fromkeys(("ops", "worker", "team-1"), WORDS)
    ),
)
PLAIN = Asked()
NAMED = st.builds(
    Asked,
    agent_id=st.none() | st.sampled_from([*words.AGENT_IDS]),
    mode=st.sampled_from([None, None, "run", "session"]),
    thread=st.booleans(),
    thinking=THINKING,
)
WRONG = st.builds(Asked, agent_id=st.sampled_from([*words.NO_AGENT_IDS]), thinking=THINKING)
ASKED = st.one_of(st.just(PLAIN), NAMED, NAMED, NAMED, WRONG)
