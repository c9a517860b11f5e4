"""A run that a random test asks one thing after the other of."""

from domain.run.commands import RunCommand
from domain.run.events import RunEvent
from domain.run.state import Run
from domain.values.refusals import Rejected
from tests.support.builders.storytelling import Story, given


class AskedRun:
    """`story` is what has happened to it so far."""

    story: Story[Run, RunEvent, RunCommand]

    @property
    def run(self) -> Run:
        assert self.story.state is not None
        return self.story.state

    def ask(self, command: RunCommand) -> tuple[RunEvent, ...] | None:
        """What was recorded; None when it was turned down."""
        try:
            events = self.story.decide(self.story.state, command)
        except Rejected:
            return None
        self.story = given(*self.story.events, *events)
        return events
