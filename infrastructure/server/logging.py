"""Log lines on stderr. Foreign text cannot forge a line."""

import logging
import sys
from datetime import UTC, datetime

LINE_CHARS_MAX = 4_000


class OneLineFormatter(logging.Formatter):
    """`2026-11-20T10:00:00.000Z WARNING spawnlog.scripts: …`, control characters escaped."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record as one line, followed by the traceback if there is one."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        text = _escape_controls(record.getMessage())
        line = f"{at.replace('+00:00', 'Z')} {record.levelname} {record.name}: {text}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


def _escape_controls(text: str) -> str:
    cut = text if len(text) <= LINE_CHARS_MAX else text[:LINE_CHARS_MAX] + "…"
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in cut
    )


def write_to_stderr() -> None:
    """Configure logging of the process."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLineFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    # Other libraries log only warnings.
    for noisy in ("psycopg.pool", "uvicorn", "alembic", "asyncio", "httpx2"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
