"""The list of all projections, used by the writer, rebuilds and verifications."""

from typing import Any

from application.projections.projection import Projection
from application.projections.run_rows import RUNS
from application.projections.session_rows import SESSIONS

PROJECTIONS: tuple[Projection[Any, Any], ...] = (RUNS, SESSIONS)
