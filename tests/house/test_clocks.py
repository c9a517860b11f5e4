"""A recorded instant is compared with the database's clock alone."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
_WALL_CLOCK = re.compile(r"datetime\.now\(|datetime\.utcnow\(|\btime\.time\(|\btime_ns\(\)")
_MAY = {
    "infrastructure/outbound/log/read/database_clock.py": "the time before the first answer",
    "infrastructure/outbound/identity/data_directory.py": "the order of the entries of servers",
    "infrastructure/outbound/hooks/http_webhooks.py": "the receiver's clock is the world's",
    "infrastructure/inbound/command_line/client/wall_clock.py": "the time of the terminal",
    "infrastructure/inbound/command_line/display/session_tree.py": "knows no database",
    "infrastructure/inbound/command_line/commands/run/subagents.py": "knows no database",
}


def test_wall_clock_is_asked_by_named_modules() -> None:
    modules = {
        str(path.relative_to(ROOT))
        for floor in ("domain", "application", "infrastructure")
        for path in (ROOT / floor).rglob("*.py")
        if _WALL_CLOCK.search(path.read_text("utf-8"))
    }
    assert modules == set(_MAY)
