"""Lists that come in pages: what a page holds, and how the next one is asked for."""

from infrastructure.inbound.command_line.display.failures import CommandFailed
from infrastructure.inbound.command_line.display.output import JsonObject

PAGE_ITEMS_MAX = 500


def items_of(body: JsonObject) -> list[JsonObject]:
    """The items of a page. CommandFailed when it is none."""
    items = body.get("items")
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise CommandFailed("the answer is not from a spawnlog server: it lists no items")
    return items


def next_page_parameters(
    body: JsonObject, after: int | str | None, *, newest_first: bool = False
) -> dict[str, int | str] | None:
    """The parameters of the page that follows this one; None when it was the last.

    `after` is what this page was asked for with, `newest_first` in which order.
    """
    if cursor := body.get("nextCursor"):
        return {"cursor": str(cursor)}
    if newest_first:
        older = body.get("nextBefore")
        return {"before": older} if isinstance(older, int) else None
    following = body.get("nextAfter")
    if not isinstance(following, int | str) or str(following) == str(after or 0):
        return None
    head = body.get("head")
    if isinstance(head, int) and isinstance(following, int):
        return {"after": following} if following < head else None
    return {"after": following}
