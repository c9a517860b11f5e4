"""Whether a command comes from whoever holds the run."""

from domain.run.lifecycle import OVER
from domain.run.state import Run
from domain.values.refusals import LostClaim, WrongStage


def must_hold(run: Run, epoch: int) -> None:
    """`WrongStage` when the run is over, `LostClaim` when `epoch` is not the present claim."""
    if run.stage in OVER:
        raise WrongStage("go on", run.stage)
    if run.epoch != epoch:
        raise LostClaim(run.epoch, epoch)
