"""`spawnlog status` and `spawnlog version`."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from infrastructure.inbound.command_line.client.global_options import OutputOption
from infrastructure.inbound.command_line.client.options import ApiOptions
from infrastructure.inbound.command_line.display.failures import (
    RequestRefusedError,
    UnreachableError,
)
from infrastructure.inbound.command_line.display.output import (
    JsonObject,
    print_fields,
    print_object,
)
from infrastructure.inbound.command_line.display.output_form import Output
from infrastructure.inbound.command_line.display.times import format_instant

if TYPE_CHECKING:
    from infrastructure.inbound.command_line.client.client import CommandClient

LANES_MAX = 10_000


def show_version(output: OutputOption = Output.TABLE) -> None:
    """Show the version of this program.

    Does not contact a server.
    """
    version = _own_version()
    if not print_object({"version": version}, output):
        print(f"spawnlog {version}")


def show_status(*, api: ApiOptions) -> None:
    """Show the server, its database, configuration and lanes.

    Also shows its version and the head of the log. Exit status 5 if the server or its database does
    not answer.
    """
    with api.client() as client:
        url = client.server.url
        release = client.get("/healthz").value.get("version")
        not_ready = _readiness(client)
        status: JsonObject = {
            "server": url,
            "version": release,
            "clientVersion": _own_version(),
            "database": not_ready.message if not_ready else "ready",
        }
        if not_ready is None:
            status |= {
                "configuration": _permitted(lambda: _configuration(client)),
                "head": _permitted(lambda: client.get("/v1/log").value),
                "lanes": _permitted(lambda: _lanes(client)),
            }
    if not print_object(status, api.output):
        print_fields(_fields(status))
    if not_ready is not None:
        raise not_ready


def _readiness(client: "CommandClient") -> UnreachableError | None:
    try:
        client.get("/readyz")
    except UnreachableError as failure:
        return failure
    return None


def _permitted(ask: Callable[[], object]) -> object:
    """Return the answer, or None if the token may not see it."""
    try:
        return ask()
    except RequestRefusedError:
        return None


def _configuration(client: "CommandClient") -> JsonObject | None:
    revisions = client.items("/v1/config/revisions", {}, limit=1).items
    return revisions[0] if revisions else None


def _lanes(client: "CommandClient") -> list[JsonObject]:
    return client.items("/v1/lanes", {}, limit=LANES_MAX).items


def _fields(status: JsonObject) -> dict[str, object]:
    hidden = "not shown to this token"
    configuration, head, lanes = (status.get(name) for name in ("configuration", "head", "lanes"))
    own = status["clientVersion"]
    fields = {
        "server": status["server"],
        "version": f"{status['version'] or 'unknown'}"
        + ("" if status["version"] == own else f" (this program: {own})"),
        "database": status["database"],
    }
    if "head" not in status:
        return fields
    return fields | {
        "configuration": _configuration_text(configuration) if configuration else hidden,
        "head": _head_text(head) if head else hidden,
        "lanes": hidden if lanes is None else _lanes_text(lanes),
    }


def _configuration_text(revision: JsonObject) -> str:
    since = format_instant(revision.get("activatedAt"))[:19]
    return f"revision {revision.get('revision')}, {revision.get('source')}, active since {since}"


def _head_text(head: JsonObject) -> str:
    recorded = format_instant(head.get("recordedAt"))[:19]
    return f"pos:{head.get('position')}{f', recorded {recorded}' if recorded else ''}"


def _lanes_text(lanes: list[JsonObject]) -> str:
    running = sum(len(lane.get("running") or ()) for lane in lanes)
    queued = sum(len(lane.get("queued") or ()) for lane in lanes)
    return f"{running} running, {queued} queued"


def _own_version() -> str:
    # Imported late: it takes longer than the whole help.
    from importlib.metadata import version

    return version("spawnlog")
