"""A workspace into which files are attached."""

from pathlib import Path

import pytest

from tests.support.builders.folders import Ground, ground_in


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return ground_in(tmp_path)
