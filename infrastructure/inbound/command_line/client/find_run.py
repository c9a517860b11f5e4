"""Finding the run that a name means, with as few questions to the server as that takes."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from domain.values.agent_id import is_valid_agent_id
from infrastructure.inbound.command_line.client.paging import JsonObject
from infrastructure.inbound.command_line.display.failures import CommandFailed
from infrastructure.inbound.command_line.naming import (
    ParsedRunName,
    RunNames,
    choose_run,
    parse_run_name,
)

if TYPE_CHECKING:
    from infrastructure.inbound.command_line.client.client import Client


RUNS_SEARCHED_MAX = 10_000
LABELLED_FIRST = 10


@dataclass(frozen=True, slots=True)
class FoundRun:
    """A run that was found. `exact` as in `naming.Chosen`."""

    run_id: str
    exact: bool


def find_run(client: "Client", text: str) -> FoundRun:
    """The run that a person calls `text`.

    Raises NotFound when there is none; CommandFailed when there are several, or when it is not
    among the newest 10 000 runs and there are more.
    """
    name = parse_run_name(text)
    if name.kind == "id":
        return FoundRun(name.text, exact=True)
    if name.kind == "place":
        runs = client.items("/v1/runs", {}, limit=name.place).items
        return _choose_found(name, runs)
    labelled = _find_by_label(client, name)
    if not _may_be_id_prefix_or_key(name):
        return _choose_found(name, labelled)
    listing = client.items("/v1/runs", _agent_filter(name), limit=RUNS_SEARCHED_MAX)
    known = {item.get("runId") for item in labelled}
    others = [item for item in listing.items if item.get("runId") not in known]
    if listing.more and not labelled and not _is_child_key_in(name, others):
        raise CommandFailed(
            f"there are more than {RUNS_SEARCHED_MAX} runs to search: give the full id"
        )
    return _choose_found(name, labelled + others)


def _find_by_label(client: "Client", name: ParsedRunName) -> list[JsonObject]:
    """Runs with that label: as many as it takes to see whether they are all of one child."""
    asked = {"label": name.text}
    found = client.items("/v1/runs", asked, limit=LABELLED_FIRST)
    if found.more and _items_are_of_one_child(found.items):
        found = client.items("/v1/runs", asked, limit=RUNS_SEARCHED_MAX)
        if found.more and _items_are_of_one_child(found.items):
            raise CommandFailed(
                f"more than {RUNS_SEARCHED_MAX} runs have that label: give the full id"
            )
    return found.items


def _items_are_of_one_child(items: list[JsonObject]) -> bool:
    return len({item.get("childSessionKey") for item in items}) == 1


def _may_be_id_prefix_or_key(name: ParsedRunName) -> bool:
    return name.may_be_prefix or ":" in name.text


def _agent_filter(name: ParsedRunName) -> dict[str, str | int | None]:
    """A child key says which agent its runs are of."""
    parts = name.text.lower().split(":")
    is_child_key = len(parts) > 3 and parts[0] == "agent" and parts[2] == "subagent"
    return {"agentId": parts[1]} if is_child_key and is_valid_agent_id(parts[1]) else {}


def _is_child_key_in(name: ParsedRunName, items: list[JsonObject]) -> bool:
    return any(item.get("childSessionKey") == name.text.lower() for item in items)


def _choose_found(name: ParsedRunName, items: list[JsonObject]) -> FoundRun:
    chosen = choose_run(name, [_run_names_of(item) for item in items])
    return FoundRun(chosen.run_id, chosen.exact)


def _run_names_of(item: JsonObject) -> RunNames:
    return RunNames(str(item.get("runId")), item.get("label"), item.get("childSessionKey"))
