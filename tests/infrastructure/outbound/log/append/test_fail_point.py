"""A process dies where it was told to, once; and nowhere when it was told nothing."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from infrastructure.outbound.log.append.fault_point import VARIABLE, LogFaultPoint, names_of
from tests.support.builders import effects
from tests.support.builders import run_histories as past

PASSING = """
import os
from infrastructure.outbound.log.append.fault_point import LogFaultPoint
fault_point = LogFaultPoint.of(os.environ)
fault_point.pass_by("before", ["RunQueued", "RunClaimed"])
print("not before", flush=True)
fault_point.pass_by("after", ["RunQueued", "RunClaimed"])
print("not after", flush=True)
"""


def passing(order: Path) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, VARIABLE: str(order)}
    return subprocess.run(
        [sys.executable, "-c", PASSING],
        env=environment,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def test_without_the_variable_nothing_happens() -> None:
    for environment in ({}, {VARIABLE: ""}):
        LogFaultPoint.of(environment).pass_by("after", ["RunClaimed"])


def test_another_order_or_none_is_left_alone(tmp_path: Path) -> None:
    order = tmp_path / "order"
    fault_point = LogFaultPoint.of({VARIABLE: str(order)})
    fault_point.pass_by("after", ["RunClaimed"])
    for other in ("after RunStarted", "before RunClaimed", "RunClaimed", "", "after"):
        order.write_text(other, "utf-8")
        fault_point.pass_by("after", ["RunQueued", "RunClaimed"])
        assert order.read_text("utf-8") == other


def test_an_order_is_carried_out_once(tmp_path: Path) -> None:
    order = tmp_path / "order"
    order.write_text("after RunClaimed\n", "utf-8")
    died = passing(order)
    assert (died.returncode, died.stdout) == (-signal.SIGKILL, "not before\n")
    assert not order.exists()
    lived = passing(order)
    assert (lived.returncode, lived.stdout) == (0, "not before\nnot after\n")


def test_an_event_of_a_step_or_an_effect_goes_by_its_name_too() -> None:
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
