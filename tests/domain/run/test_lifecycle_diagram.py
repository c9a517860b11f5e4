"""The drawing of a run's life is the table itself: `make docs` puts it into the README."""

from pathlib import Path

import pytest

from domain.run.lifecycle import LIFECYCLE, OVER, PREPARING, RunStage, mermaid

README = Path(__file__).parents[3] / "README.md"
BEFORE, AFTER = "<!-- lifecycle -->", "<!-- /lifecycle -->"


def test_the_readme_shows_exactly_the_lifecycle_of_the_code() -> None:
    text = README.read_text()
    assert (text.count(BEFORE), text.count(AFTER)) == (1, 1)
    shown = text.split(BEFORE)[1].split(AFTER)[0].strip()
    assert shown == f"```mermaid\n{mermaid()}\n```", "run: make docs"


def test_every_cell_of_the_table_is_an_arrow() -> None:
    arrows = [line for line in mermaid().splitlines() if "-->" in line]
    cells = [(stage, event) for stage, cells in LIFECYCLE.items() for event in cells]
    ends = ["    archived --> [*]", "    refused --> [*]"]
    assert len(arrows) == len(cells) + len(ends)
    assert arrows[-2:] == ends
    assert "    [*] --> requested: SpawnRequested" in arrows
    assert "    session_created --> queued: RunQueued" in arrows


@pytest.mark.parametrize("stage", LIFECYCLE)
def test_every_stage_is_reached_by_some_event(stage: RunStage) -> None:
    reached = {after for cells in LIFECYCLE.values() for after in cells.values()}
    assert (stage in reached) == (stage != "unborn")


@pytest.mark.parametrize("stage", sorted(OVER))
def test_what_is_over_stays_over(stage: RunStage) -> None:
    assert set(LIFECYCLE[stage].values()) <= OVER
    assert stage not in PREPARING
