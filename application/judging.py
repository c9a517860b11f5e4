"""What the end of a runtime means when it was killed: whoever wanted that speaks first."""

from dataclasses import replace

from application.ports.runtimes import RuntimeEnd


def evaluate_end(
    end: RuntimeEnd, *, interrupted: str | None, stop_wanted: bool, timed_out: bool
) -> RuntimeEnd:
    """The end as it is recorded. One that came by itself is what its runtime says it is."""
    if end.reason != "stopped":
        return end
    if interrupted is not None:
        text = f"interrupted: {interrupted}"
        return replace(end, outcome="error", reason="interrupted", error=text)
    if stop_wanted:
        return replace(end, outcome="stopped", error=None)
    if timed_out:
        return replace(end, outcome="timeout", reason="timeout", error=None)
    return end
