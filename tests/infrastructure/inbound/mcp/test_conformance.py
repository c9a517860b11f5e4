"""The lists of the conformance suite stay true, and the document says the same."""

from pathlib import Path
from typing import Any

import pytest

from mcp_clients.conformance import (
    CARRIED,
    CLIENT,
    NOT_OFFERED,
    OURS,
    Trial,
    differences,
    unlisted,
)

DOCUMENT = Path(__file__).parents[4] / "mcp_clients" / "README.md"


def checks(**statuses: str) -> list[dict[str, Any]]:
    named = {name.replace("_", "-"): status for name, status in statuses.items()}
    return [{"id": name, "status": status, "description": "x"} for name, status in named.items()]


@pytest.mark.parametrize("status", ["FAILURE", "WARNING"])
def test_failed_check_is_wrong_unless_listed(status: str) -> None:
    seen = checks(ping=status, wire_schema_valid="SUCCESS")
    assert list(differences(Trial("ping", "2025-11-25"), seen)) == ["ping: x"]
    assert list(differences(Trial("resources-subscribe", "2025-11-25"), seen)) == []


def test_listed_check_that_holds_is_wrong() -> None:
    (whole,) = differences(Trial("resources-subscribe", "2025-11-25"), checks(it="SUCCESS"))
    assert whole == "it is listed as not offered, and holds: it"
    lifecycle = Trial("tasks-lifecycle", "extension")
    (single,) = differences(
        lifecycle, checks(it="SUCCESS", sep_2663_tasks_get_status_failed="SUCCESS")
    )
    assert single == "sep-2663-tasks-get-status-failed is listed as not offered, and holds"


def test_new_or_gone_scenario_is_wrong() -> None:
    assert "brand-new: new in the suite; say what it shows" in unlisted({"brand-new", "ping"})
    assert "caching: no longer in the suite" in unlisted({"brand-new", "ping"})


def test_document_lists_what_is_not_offered() -> None:
    text = DOCUMENT.read_text("utf-8")
    for reason, entries in NOT_OFFERED.items():
        named = ", ".join(f"`{entry}`" for entry in entries)
        assert f"| {named} | {reason} |" in text
    for shown in (OURS, CLIENT):
        assert "| " + ", ".join(f"`{item}`" for item in sorted(shown)) + " |" in text
    assert OURS.isdisjoint(CARRIED)
