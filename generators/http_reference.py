"""Generate the table of endpoints in docs/http.md; run by `make docs`.

The texts are the summaries of the operations. The conditions that follow a scope are kept.
"""

import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from pathlib import Path

from application.queries.operation import Operation, Parameters
from infrastructure.inbound.http.openapi import document
from infrastructure.inbound.http.operations import OPERATIONS
from infrastructure.inbound.http.responses.problems import TITLES

PAGE = Path(__file__).parents[1] / "docs" / "http.md"
HEAD = "| endpoint | scope | what it does | parameters | answers |\n|---|---|---|---|---|\n"
ROW = re.compile(r"^\| `([A-Z]+ /\S*)` \| ?(.*?) \|", re.M)
COMMON = re.compile(r"(?<=^Beside these, any endpoint may answer ).*?(?=\.\n\n)", re.M | re.S)
OWN_SCOPE = re.compile(r"^`\w+`")
FOR_ALL_READS = "minPosition"
PAGES: Mapping[str, str] = {
    "spawn": "chains-and-batches.md",
    "respawn": "respawn.md",
    "listRuns": "#words-and-totals",
    "getRunTranscript": "#follow-a-run",
    "sendMessage": "sessions.md",
    "yieldSession": "sessions.md",
    "provideTranscript": "forks.md",
    "getSharedContext": "shared-context.md",
    "patchSharedContext": "shared-context.md",
    "redriveAnnouncement": "webhooks.md#retries-and-parked-announcements",
    "redriveAnnouncements": "webhooks.md#retries-and-parked-announcements",
    "claimRun": "external-runs.md",
    "findEvents": "#since-when",
    "getSummary": "time-travel.md#what-happened-since",
    "getDiff": "time-travel.md",
    "whatIf": "time-travel.md#what-if",
    "getLogHead": "#the-verification-of-the-log",
    "startVerification": "#the-verification-of-the-log",
    "makePageCode": "page.md",
    "getMetrics": "telemetry.md",
}
"""The page, or the section of this one, with more about an operation."""


def reference(page: str) -> str:
    """Return the page with an up-to-date table, in the order of the operations."""
    before, head, after = page.partition(HEAD)
    assert head, "docs/http.md has no table of endpoints"
    table, gap, rest = after.partition("\n\n")
    scopes = dict(ROW.findall(table))
    rows = []
    for row in OPERATIONS:
        endpoint = f"{row.method} {row.path}"
        cells = (
            f"`{endpoint}`",
            _scope(row, scopes.get(endpoint, "")),
            row.summary + _page(row.name),
            ", ".join(f"`{name}`" for name in _parameters(row.query)),
            _answers(row),
        )
        rows.append("".join(f"| {cell} " if cell else "| " for cell in cells) + "|")
    return COMMON.sub(lambda _: _common(), before) + HEAD + "\n".join(rows) + gap + rest


def _statuses() -> dict[str, set[int]]:
    """Return the statuses of each operation."""
    return {
        operation["operationId"]: {int(status) for status in operation["responses"]}
        for methods in document()["paths"].values()
        for operation in methods.values()
    }


def _common() -> str:
    """Return the statuses that all operations share, then those of each kind of operation."""
    statuses, known, parts = _statuses(), set[int](), []
    for words, rows in {
        "": OPERATIONS,
        "to a token ": [row for row in OPERATIONS if row.token],
        "to a body ": [row for row in OPERATIONS if row.body is not None],
        "to an `Idempotency-Key` ": [row for row in OPERATIONS if row.repeat == "key"],
    }.items():
        own = set.intersection(*(statuses[row.name] for row in rows)) - known
        known |= own
        parts.append(words + _listed(own))
    return ";\n".join(parts)


def _answers(row: Operation) -> str:
    """Return the success statuses, then those of the problems that the row names."""
    done = {status for status in _statuses()[row.name] if status < HTTPStatus.MULTIPLE_CHOICES}
    return ", ".join(
        filter(None, (_listed(done), _listed({TITLES[code][0] for code in row.errors})))
    )


def _scope(row: Operation, known: str) -> str:
    """Return the scope with the page's condition. Without a scope, return the text of the page."""
    if row.scope is None:
        return known or ("any" if row.token else "none")
    return f"`{row.scope}`" + (OWN_SCOPE.sub("", known) if OWN_SCOPE.match(known) else "")


def _parameters(query: type[Parameters] | None) -> list[str]:
    fields = query.model_fields if query is not None else {}
    names = [field.alias or name for name, field in fields.items()]
    return [name for name in names if name != FOR_ALL_READS]


def _listed(statuses: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(statuses)))


def _page(name: str) -> str:
    page = PAGES.get(name)
    return f" ([{page.partition('#')[0] or 'below'}]({page}))" if page else ""


if __name__ == "__main__":
    PAGE.write_text(reference(PAGE.read_text("utf-8")), "utf-8")
