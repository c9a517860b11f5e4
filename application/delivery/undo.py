"""Undoes steps of preparations."""

from collections.abc import Sequence

from application.concurrency.bulkhead import undo_compartment
from application.delivery.effects import AttemptResult, Impossible
from application.steps.step import StepMaker, UndoError
from domain.run.facts import Effect, EffectKind
from domain.run.state import Run


class UndoPerformer:
    """Performer of the undos of steps. Implements `EffectPerformer`."""

    kind: EffectKind = "undo"

    def __init__(self, makers: Sequence[StepMaker]) -> None:
        self._makers = {str(maker.name): maker for maker in makers}

    def room(self, effect: Effect) -> str:
        """Return the compartment of the step."""
        return undo_compartment(effect.name)

    async def perform(self, run: Run, effect: Effect) -> AttemptResult | Impossible:
        maker = self._makers[effect.name]
        state = run.step(maker.name)
        assert state is not None
        try:
            return AttemptResult(outcome=await maker.undo(run, state))
        except UndoError as failure:
            return AttemptResult(error=str(failure))
