"""Resolution of a run's name to its id, with few requests to the server."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from domain.values.agent_id import is_valid_agent_id
from infrastructure.inbound.command_line.display.failures import CommandError, ResourceNotFoundError
from infrastructure.inbound.command_line.display.output import JsonObject
from infrastructure.inbound.command_line.display.plain_text import printable_line
from infrastructure.inbound.command_line.display.times import format_instant

# A name is one of these, in order of precedence: `last`, `#<place>` in the list of runs (newest
# first, from 1), `<label>@last` (the newest run with that label; a refused one only if there is no
# other), a full run id, an exact label, a child session key, or a prefix of a run id.


PREFIX_CHARACTERS_MIN = 4
PLACE_MAX = 10_000
_FULL_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PLACE = re.compile(r"#([1-9][0-9]{0,4})")
_PREFIX = re.compile(r"[0-9a-f][0-9a-f-]{3,34}")
_CANDIDATES_SHOWN_MAX = 5
_NEWEST = "@last"
_REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class RunNames:
    """The names of a run."""

    run_id: str
    label: str | None = None
    child_session_key: str | None = None
    created_at: str | None = None
    status: str | None = None


@dataclass(frozen=True, slots=True)
class RunMatch:
    """The run that a name means.

    `exact` is True if the name can mean no other run, now or later. A command that destroys asks
    for confirmation otherwise.
    """

    run_id: str
    exact: bool


@dataclass(frozen=True, slots=True)
class ParsedRunName:
    """A name by its form.

    `place` counts from 1. `text` is a label, key or prefix; for `newest` it is the label.
    """

    kind: Literal["place", "newest", "id", "text"]
    text: str
    place: int = 0

    @property
    def may_be_prefix(self) -> bool:
        """Return True if the text could be a prefix of a run id."""
        return _PREFIX.fullmatch(self.text.lower()) is not None


def parse_run_name(name: str) -> ParsedRunName:
    """Return the form of a name. Raise CommandError if it can name no run."""
    text = name.strip()
    if not text:
        raise CommandError("give the name of a run, such as `last` or a prefix of its id")
    if text == "last":
        return ParsedRunName("place", text, 1)
    if match := _PLACE.fullmatch(text):
        place = int(match[1])
        if place > PLACE_MAX:
            raise CommandError(f"a place in the list of runs is at most #{PLACE_MAX}")
        return ParsedRunName("place", text, place)
    if text.endswith(_NEWEST) and text != _NEWEST:
        return ParsedRunName("newest", text.removesuffix(_NEWEST))
    if _FULL_ID.fullmatch(text.lower()):
        return ParsedRunName("id", text.lower())
    return ParsedRunName("text", text)


def choose_run(name: ParsedRunName, runs: Sequence[RunNames]) -> RunMatch:
    """Return the run that `name` means among `runs`, which are sorted newest first.

    A child key with several runs means the newest. So does a label that only runs of one child
    have.

    Raises:
        NotFound: No run has the name.
        CommandError: Several runs have it; the message lists them.
    """
    if name.kind == "place":
        if name.place > len(runs):
            raise ResourceNotFoundError(f"there is no run {name.text}: the list has {len(runs)}")
        return RunMatch(runs[name.place - 1].run_id, exact=False)
    if name.kind == "newest":
        labelled = [run for run in runs if run.label == name.text]
        accepted = [run for run in labelled if run.status != _REFUSED]
        return _single_match(name, (accepted or labelled)[:1], exact=False)
    if name.kind == "id":
        return _single_match(name, [run for run in runs if run.run_id == name.text], exact=True)
    labelled = [run for run in runs if run.label == name.text]
    prefixed = _prefix_matches(name, runs)
    if labelled:
        others = [run for run in prefixed if run not in labelled]
        if not others and len(labelled) > 1 and _name_one_child(labelled):
            return RunMatch(labelled[0].run_id, exact=False)
        return _single_match(name, labelled, exact=not others)
    if children := [run for run in runs if run.child_session_key == name.text.lower()]:
        return RunMatch(children[0].run_id, exact=len(children) == 1)
    return _single_match(name, prefixed, exact=False)


def _name_one_child(runs: list[RunNames]) -> bool:
    return len({run.child_session_key or run.run_id for run in runs}) == 1


def _prefix_matches(name: ParsedRunName, runs: Sequence[RunNames]) -> list[RunNames]:
    if not name.may_be_prefix:
        return []
    return [run for run in runs if run.run_id.startswith(name.text.lower())]


def _single_match(name: ParsedRunName, matches: list[RunNames], *, exact: bool) -> RunMatch:
    shown = printable_line(name.text, 80)
    if not matches:
        advice = "`spawnlog run list` shows all runs"
        if name.kind == "text" and len(name.text) < PREFIX_CHARACTERS_MIN:
            advice = f"a prefix of an id needs {PREFIX_CHARACTERS_MIN} characters"
        raise ResourceNotFoundError(f'no run has the name "{shown}"; {advice}')
    if len(matches) > 1:
        raise CommandError("\n".join(_candidate_lines(name, matches)))
    return RunMatch(matches[0].run_id, exact)


def _candidate_lines(name: ParsedRunName, matches: Sequence[RunNames]) -> list[str]:
    """Return the error for an ambiguous name, with the newest matching runs."""
    shown = printable_line(name.text, 80)
    is_label = all(run.label == name.text for run in matches)
    newest = f', or "{shown}{_NEWEST}" for the newest' if is_label else ""
    lines = [f'"{shown}" matches {len(matches)} runs; give the id of one{newest}:']
    for run in matches[:_CANDIDATES_SHOWN_MAX]:
        facts = (
            run.run_id,
            format_instant(run.created_at)[:19],
            f"{printable_line(run.status or '', 20):9}",
            printable_line(run.label or run.child_session_key or "", 80),
        )
        lines.append("  " + "  ".join(fact for fact in facts if fact.strip()).rstrip())
    if len(matches) > _CANDIDATES_SHOWN_MAX:
        lines.append(f"  and {len(matches) - _CANDIDATES_SHOWN_MAX} more")
    return lines


if TYPE_CHECKING:
    from infrastructure.inbound.command_line.client.client import CommandClient


RUNS_SEARCHED_MAX = 10_000
LABELLED_FIRST = 10


@dataclass(frozen=True, slots=True)
class FoundRun:
    """A run that was found. `exact` is as in `RunMatch`."""

    run_id: str
    exact: bool


def find_run(client: "CommandClient", text: str) -> FoundRun:
    """Return the run with this name.

    Raises:
        NotFound: No run has the name.
        CommandError: Several runs have it, or it is not among the newest 10,000 of more runs.
    """
    name = parse_run_name(text)
    if name.kind == "id":
        return FoundRun(name.text, exact=True)
    if name.kind == "place":
        runs = client.items("/v1/runs", {}, limit=name.place).items
        return _choose_found(name, runs)
    if name.kind == "newest":
        return _choose_found(name, _newest_with_label(client, name.text))
    labelled = _find_by_label(client, name)
    if not _may_be_id_prefix_or_key(name):
        return _choose_found(name, labelled)
    listing = client.items("/v1/runs", _agent_filter(name), limit=RUNS_SEARCHED_MAX)
    known = {run.get("runId") for run in labelled}
    others = [run for run in listing.items if run.get("runId") not in known]
    if listing.more and not labelled and not _is_child_key_in(name, others):
        raise CommandError(
            f"there are more than {RUNS_SEARCHED_MAX} runs to search: give the full id"
        )
    return _choose_found(name, labelled + others)


def _newest_with_label(client: "CommandClient", label: str) -> list[JsonObject]:
    """Return the newest runs with this label: enough to include one that was not refused."""
    listing = client.items("/v1/runs", {"label": label}, limit=LABELLED_FIRST)
    if listing.more and all(run.get("status") == _REFUSED for run in listing.items):
        listing = client.items("/v1/runs", {"label": label}, limit=RUNS_SEARCHED_MAX)
    return listing.items


def _find_by_label(client: "CommandClient", name: ParsedRunName) -> list[JsonObject]:
    """Return runs with this label: enough to see whether all are of one child."""
    query = {"label": name.text}
    listing = client.items("/v1/runs", query, limit=LABELLED_FIRST)
    if listing.more and _runs_are_of_one_child(listing.items):
        listing = client.items("/v1/runs", query, limit=RUNS_SEARCHED_MAX)
        if listing.more and _runs_are_of_one_child(listing.items):
            raise CommandError(
                f"more than {RUNS_SEARCHED_MAX} runs have that label: give the full id"
            )
    return listing.items


def _runs_are_of_one_child(runs: list[JsonObject]) -> bool:
    return len({run.get("childSessionKey") for run in runs}) == 1


def _may_be_id_prefix_or_key(name: ParsedRunName) -> bool:
    return name.may_be_prefix or ":" in name.text


def _agent_filter(name: ParsedRunName) -> dict[str, str | int | None]:
    """Return a filter for the agent that a child session key names, or none."""
    parts = name.text.lower().split(":")
    is_child_key = len(parts) > 3 and parts[0] == "agent" and parts[2] == "subagent"
    return {"agentId": parts[1]} if is_child_key and is_valid_agent_id(parts[1]) else {}


def _is_child_key_in(name: ParsedRunName, runs: list[JsonObject]) -> bool:
    return any(run.get("childSessionKey") == name.text.lower() for run in runs)


def _choose_found(name: ParsedRunName, runs: list[JsonObject]) -> FoundRun:
    chosen = choose_run(name, [_run_names_of(run) for run in runs])
    return FoundRun(chosen.run_id, chosen.exact)


def _run_names_of(run: JsonObject) -> RunNames:
    return RunNames(
        str(run.get("runId")),
        run.get("label"),
        run.get("childSessionKey"),
        run.get("createdAt"),
        run.get("status"),
    )
