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

DOCUMENT = Path(__file__).parents[4] / "docs" / "mcp.md"
WIRE = "wire-schema-valid"


def checks(**statuses: str) -> list[dict[str, Any]]:
    named = {name.replace("_", "-"): status for name, status in statuses.items()}
    return [{"id": name, "status": status, "description": "x"} for name, status in named.items()]


@pytest.mark.parametrize("status", ["FAILURE", "WARNING"])
def test_a_check_that_does_not_hold_is_wrong_unless_it_is_listed(status: str) -> None:
    seen = checks(ping=status, wire_schema_valid="SUCCESS")
    assert list(differences(Trial("ping", "2025-11-25"), seen)) == ["ping: x"]
    assert list(differences(Trial("resources-subscribe", "2025-11-25"), seen)) == []


def test_what_is_listed_as_not_offered_and_holds_is_wrong() -> None:
    (whole,) = differences(Trial("resources-subscribe", "2025-11-25"), checks(it="SUCCESS"))
    assert whole == "it is listed as not offered, and holds: it"
    lifecycle = Trial("tasks-lifecycle", "extension")
    (single,) = differences(
        lifecycle, checks(it="SUCCESS", sep_2663_tasks_get_status_failed="SUCCESS")
    )
    assert single == "sep-2663-tasks-get-status-failed is listed as not offered, and holds"


def test_a_scenario_that_shows_nothing_is_wrong() -> None:
    seen = checks(it="SKIPPED", wire_schema_valid="SUCCESS")
    assert list(differences(Trial("ping", "2025-11-25"), seen)) == ["it shows nothing"]


def test_what_is_sent_is_as_the_protocol_has_it_where_a_scenario_is_not_offered_too() -> None:
    seen = checks(it="FAILURE", wire_schema_valid="FAILURE")
    wrong = list(differences(Trial("resources-subscribe", "2025-11-25"), seen))
    assert wrong == ["wire-schema-valid: x"]


def test_what_is_listed_for_a_version_is_for_no_other() -> None:
    seen = checks(it="WARNING")
    scenario = "server-sse-multiple-streams"
    assert list(differences(Trial(scenario, "2025-11-25"), seen)) == []
    assert list(differences(Trial(scenario, "2026-07-28"), seen)) == ["it: x"]


def test_a_group_is_listed_by_its_name() -> None:
    one = Trial("auth/one-of-them", "2026-07-28", "client")
    assert list(differences(one, checks(it="FAILURE"))) == []
    assert list(differences(one, checks(it="SUCCESS"))) != []


def test_a_scenario_that_is_new_or_gone_is_wrong() -> None:
    assert "brand-new: new in the suite; say what it shows" in unlisted({"brand-new", "ping"})
    assert "caching: no longer in the suite" in unlisted({"brand-new", "ping"})


def test_the_document_lists_what_is_not_offered_with_its_reason_and_what_is_shown() -> None:
    text = DOCUMENT.read_text("utf-8")
    for reason, entries in NOT_OFFERED.items():
        named = ", ".join(f"`{entry}`" for entry in entries)
        assert f"| {named} | {reason} |" in text
    for shown in (OURS, CLIENT):
        assert "| " + ", ".join(f"`{one}`" for one in sorted(shown)) + " |" in text
    assert OURS.isdisjoint(CARRIED)
