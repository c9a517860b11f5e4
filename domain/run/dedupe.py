"""Keys by which a repeat is told."""

from domain.run.state import Run


def dedupe_key(run: Run) -> str:
    """By this a receiver tells a repeated announcement of the same run."""
    return f"announce:v1:{run.child_session_key or run.session_id}:{run.run_id}"
