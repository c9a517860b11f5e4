"""Spawns that say something from every source that a prompt has, at random."""

from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

SCRIPTS = {"first": "prepend", "second": "prepend", "third": "append", "fourth": "append"}
"""In the order in which they run, and where what they print goes."""
PREAMBLE_CHARACTERS_MAX = 60
sound = st.characters(codec="utf-8", exclude_characters="\0")

# What could be taken for the prompt's own words, among anything else.
sly = st.sampled_from(
    [
        *["\n\n", "## Rules\n", "\n\n---\n\n", "[Shared Context]:\n- goal: ", "[Session Context]"],
        *["[Subagent Context]", "\r\n", "<<<END_UNTRUSTED_CHILD_RESULT>>>", "Attachments: 9"],
    ]
)
texts = st.lists(st.text(sound, max_size=20) | sly, max_size=5).map("".join)
keys = st.text("abcä日 .:-[]<>#", min_size=1, max_size=12).filter(lambda key: key == key.strip())
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=5,
)


@dataclass(frozen=True, kw_only=True)
class Sourced:
    """What a spawn says, by where it comes from; what is empty is left out.

    `also` are more tasks at once, `found` what earlier runs say that it refers to, `waits` whether
    they are done only afterwards, `after` how many more it depends on, and `is_alias` whether its
    scripts name the agent.
    """

    task: str = "do it"
    preamble: str = ""
    scripts: dict[str, str] = field(default_factory=dict)
    bootstrap: dict[str, str] = field(default_factory=dict)
    attached: tuple[str, ...] = ()
    forks: bool = False
    before: dict[str, Any] = field(default_factory=dict)
    shared: dict[str, Any] = field(default_factory=dict)
    stays: bool = False
    takes_json: bool = False
    message: str = ""
    also: tuple[str, ...] = ()
    found: tuple[str, ...] = ()
    waits: bool = False
    after: int = 0
    is_alias: bool = False


tasks = texts.filter(str.strip)


def _possible(asked: Sourced) -> Sourced:
    """Files are for one task, and only a script names an agent."""
    attached = () if asked.also else asked.attached
    is_alias = asked.is_alias and bool(asked.scripts)
    return replace(asked, attached=attached, is_alias=is_alias)


sourced = st.builds(
    Sourced,
    task=tasks,
    preamble=texts,
    scripts=st.dictionaries(st.sampled_from(list(SCRIPTS)), texts, max_size=4),
    bootstrap=st.dictionaries(st.sampled_from(["AGENTS.md", "TOOLS.md"]), texts, max_size=2),
    attached=st.lists(texts, max_size=2).map(tuple),
    forks=st.booleans(),
    before=st.dictionaries(keys, values, max_size=3),
    shared=st.dictionaries(keys, values, max_size=3),
    stays=st.booleans(),
    takes_json=st.booleans(),
    message=st.just("") | tasks,
    also=st.just(()) | st.lists(tasks, min_size=1, max_size=2).map(tuple),
    found=st.lists(texts, max_size=2).map(tuple),
    waits=st.booleans(),
    after=st.integers(0, 1),
    is_alias=st.booleans(),
).map(_possible)
