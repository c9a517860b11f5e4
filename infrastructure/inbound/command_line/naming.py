"""What a person may call a run, and which run is meant.

A name is, in this order of precedence: `last`, `#<place>` in the list of runs (newest first, from
1), a full run id, an exact label, a child session key, or the beginning of a run id.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from infrastructure.inbound.command_line.display.failures import CommandFailed, NotFound
from infrastructure.inbound.command_line.display.plain_text import printable_line

PREFIX_CHARACTERS_MIN = 4
PLACE_MAX = 10_000

_FULL_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PLACE = re.compile(r"#([1-9][0-9]{0,4})")
_PREFIX = re.compile(r"[0-9a-f][0-9a-f-]{3,34}")
_CANDIDATES_SHOWN_MAX = 5


@dataclass(frozen=True, slots=True)
class RunNames:
    """A run as far as its names go."""

    run_id: str
    label: str | None = None
    child_session_key: str | None = None


@dataclass(frozen=True, slots=True)
class RunMatch:
    """The run that was meant. `exact` is whether the name can mean no other run, now or later:
    what destroys asks first when it is not."""

    run_id: str
    exact: bool


@dataclass(frozen=True, slots=True)
class ParsedRunName:
    """A name by its form. `place` counts from 1; `text` is a label, a key or a beginning."""

    kind: Literal["place", "id", "text"]
    text: str
    place: int = 0

    @property
    def may_be_prefix(self) -> bool:
        """Whether a run id could begin like this."""
        return _PREFIX.fullmatch(self.text.lower()) is not None


def parse_run_name(name: str) -> ParsedRunName:
    """The form of a name. CommandFailed for one that can name no run."""
    text = name.strip()
    if not text:
        raise CommandFailed("give the name of a run, such as `last` or the beginning of its id")
    if text == "last":
        return ParsedRunName("place", text, 1)
    if found := _PLACE.fullmatch(text):
        place = int(found[1])
        if place > PLACE_MAX:
            raise CommandFailed(f"a place in the list of runs is at most #{PLACE_MAX}")
        return ParsedRunName("place", text, place)
    if _FULL_ID.fullmatch(text.lower()):
        return ParsedRunName("id", text.lower())
    return ParsedRunName("text", text)


def choose_run(name: ParsedRunName, runs: Sequence[RunNames]) -> RunMatch:
    """The run that `name` means among `runs`, the newest first.

    Raises NotFound when there is none and CommandFailed, with the candidates, when there are
    several. A child key with several runs means the newest, and so does a label that only runs of
    one child have.
    """
    if name.kind == "place":
        if name.place > len(runs):
            raise NotFound(f"there is no run {name.text}: the list has {len(runs)}")
        return RunMatch(runs[name.place - 1].run_id, exact=False)
    if name.kind == "id":
        return _single_match(name, [run for run in runs if run.run_id == name.text], exact=True)
    labelled = [run for run in runs if run.label == name.text]
    beginning = _prefix_matches(name, runs)
    if labelled:
        others = [run for run in beginning if run not in labelled]
        if not others and len(labelled) > 1 and _are_of_one_child(labelled):
            return RunMatch(labelled[0].run_id, exact=False)
        return _single_match(name, labelled, exact=not others)
    if children := [run for run in runs if run.child_session_key == name.text.lower()]:
        return RunMatch(children[0].run_id, exact=len(children) == 1)
    return _single_match(name, beginning, exact=False)


def _are_of_one_child(runs: list[RunNames]) -> bool:
    return len({run.child_session_key or run.run_id for run in runs}) == 1


def _prefix_matches(name: ParsedRunName, runs: Sequence[RunNames]) -> list[RunNames]:
    if not name.may_be_prefix:
        return []
    return [run for run in runs if run.run_id.startswith(name.text.lower())]


def _single_match(name: ParsedRunName, matches: list[RunNames], *, exact: bool) -> RunMatch:
    shown = printable_line(name.text, 80)
    if not matches:
        advice = "`spawnlog run list` shows them all"
        if name.kind == "text" and len(name.text) < PREFIX_CHARACTERS_MIN:
            advice = f"the beginning of an id needs {PREFIX_CHARACTERS_MIN} characters"
        raise NotFound(f'no run is called "{shown}"; {advice}')
    if len(matches) > 1:
        candidates = [
            f"  {run.run_id}  {printable_line(run.label or run.child_session_key or '', 80)}"
            for run in matches[:_CANDIDATES_SHOWN_MAX]
        ]
        if len(matches) > _CANDIDATES_SHOWN_MAX:
            candidates.append(f"  and {len(matches) - _CANDIDATES_SHOWN_MAX} more")
        message = f'"{shown}" names {len(matches)} runs; give the id of one:'
        raise CommandFailed("\n".join([message, *candidates]))
    return RunMatch(matches[0].run_id, exact)
