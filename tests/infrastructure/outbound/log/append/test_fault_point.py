"""Orders to die at a place in the log; the kill tests show their effect."""

from pathlib import Path

from infrastructure.outbound.log.append.fault_point import VARIABLE, LogFaultPoint, names_of
from tests.support.builders import effects
from tests.support.builders import run_histories as past


def test_other_order_is_left_alone(tmp_path: Path) -> None:
    order = tmp_path / "order"
    fault_point = LogFaultPoint.of({VARIABLE: str(order)})
    fault_point.pass_by("after", ["RunClaimed"])
    for text in ("after RunStarted", "before RunClaimed", "RunClaimed", "", "after"):
        order.write_text(text, "utf-8")
        fault_point.pass_by("after", ["RunQueued", "RunClaimed"])
        assert order.read_text("utf-8") == text


def test_events_of_steps_and_effects_have_several_names() -> None:
    events = (*past.a_run_at_a_step()[-2:], past.step_undone("workspace"))
    assert list(names_of(events)) == [
        "StepTaken",
        "StepTaken:workspace",
        "StepBegun",
        "StepBegun:attachments",
        "EffectAttempted",
        "EffectAttempted:undo",
        "EffectAttempted:undo:workspace",
    ]
    assert list(names_of([effects.hook_parked()])) == [
        "EffectParked",
        "EffectParked:hook",
        "EffectParked:hook:subagentSpawned",
    ]
    assert list(names_of(past.a_requested_run())) == ["SpawnRequested"]
