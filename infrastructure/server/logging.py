"""The log for people: lines on stderr, in which nothing from outside can pose as another line."""

import logging
import sys
from datetime import UTC, datetime

LINE_CHARS_MAX = 4_000


class OneLineFormatter(logging.Formatter):
    """`2026-11-20T10:00:00.000Z WARNING spawnlog.scripts: …`, control characters escaped."""

    def format(self, record: logging.LogRecord) -> str:
        """The line; a traceback follows it, since it comes from this program."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        text = _escape_controls(record.getMessage())
        line = f"{at.replace('+00:00', 'Z')} {record.levelname} {record.name}: {text}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


def _escape_controls(text: str) -> str:
    cut = text if len(text) <= LINE_CHARS_MAX else text[:LINE_CHARS_MAX] + "…"
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in cut
    )


def write_to_stderr() -> None:
    """Set the process's log up."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLineFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    # Other libraries speak up only when something is wrong.
    for noisy in ("psycopg.pool", "uvicorn", "alembic", "asyncio", "httpx2"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
