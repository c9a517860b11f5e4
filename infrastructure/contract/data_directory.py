"""Where a server keeps its data when nothing else was said, and what others may read there."""

from pathlib import Path

from platformdirs import user_data_path

ADMIN_TOKEN_FILE = "admin-token"  # noqa: S105
"""The admin token as one line of text, mode 0600; written by the first start."""


SERVER_FILE = "server.json"
"""`{"url": "http://HOST:PORT"}`; there while the server runs."""


def default_data_directory() -> Path:
    """The data directory of this user."""
    return user_data_path("spawnlog", appauthor=False)
