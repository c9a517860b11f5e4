"""What is attached to a spawn, explained from what was recorded with the request."""

from typing import Any

import pytest

from domain.configuration.configuration import Configuration
from tests.support.builders.explained_spawns import ADMITTED, plan_facts, the
from tests.support.builders.run_histories import created, refused, resolved, step_begun, step_taken
from tests.support.builders.storytelling import ref, requested

LIMITS = ("maxFiles", "maxFileBytes", "maxTotalBytes")
ATTACHED: list[tuple[dict[str, Any] | None, bool, int | None, str]] = [
    (None, False, 0, "nothing is attached"),
    ({"count": 2, "total_bytes": 17}, False, 17, "2 file(s) with 17 bytes in all are attached"),
    (
        {"count": 51, "refusal": ref("why"), "refusal_status": "error"},
        True,
        None,
        "51 file(s) are attached, and not all of them can be taken",
    ),
    (
        {"count": 1, "total_bytes": 3, "manifest": ref("manifest")},
        True,
        3,
        "1 file(s) with 3 bytes in all are attached, and could not be written",
    ),
]


@pytest.mark.parametrize(("attached", "refuses", "total", "text"), ATTACHED)
def test_attachments_are_counted_and_measured(
    attached: dict[str, Any] | None, refuses: bool, total: int | None, text: str
) -> None:
    event = (
        refused(rule="attachments", step="attachments", facts=plan_facts())
        if refuses
        else created(facts=plan_facts())
    )
    one = the("attachments", requested(attachments=attached), ADMITTED, resolved(), event)
    assert (one.result, one.text) == ("refused" if refuses else "passed", text)
    assert one.compared == {
        "count": attached["count"] if attached else 0,
        "totalBytes": total,
        **dict.fromkeys(LIMITS),
        "written": False,
    }


def test_attachments_are_told_beside_the_limits_of_the_revision_that_judged_them() -> None:
    limits = {"maxFiles": 3, "maxFileBytes": 40, "maxTotalBytes": 50}
    configuration = Configuration.model_validate(
        {"tools": {"sessions_spawn": {"attachments": {"enabled": True, **limits}}}}
    )
    written = step_taken("attachments", outcome="written")
    request = requested(attachments={"count": 2, "total_bytes": 17, "manifest": ref("manifest")})
    events = request, ADMITTED, resolved(), step_begun(), written, created(facts=plan_facts())
    one = the("attachments", *events, configuration=configuration)
    assert one.compared == {"count": 2, "totalBytes": 17, **limits, "written": True}
    assert (one.result, one.position) == ("passed", 14)


def test_attachments_are_not_judged_when_the_workspace_was_refused() -> None:
    event = refused(rule="workspace", step="workspace", facts=plan_facts())
    request = requested(attachments={"count": 1, "total_bytes": 3})
    assert the("attachments", request, ADMITTED, resolved(), event).result == "not_judged"
