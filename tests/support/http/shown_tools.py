"""Tools offered to models, as recorded in a file. `make docs` writes it."""

import json
from pathlib import Path

from infrastructure.inbound.mcp.tools.catalogue import TOOLS

RECORDED = Path(__file__).parents[2] / "infrastructure/inbound/mcp/tools/tools.jsonl"


def shown_tools() -> str:
    """Return a line for each tool, with its schemas where a child can be bound to a thread."""
    lines = [
        {
            "name": one.name,
            "title": one.title,
            "description": one.description,
            "scope": one.scope,
            "reads": one.reads,
            "destroys": one.destroys,
            "inputSchema": one.input_schema(threads=True),
            "outputSchema": one.output_schema(),
        }
        for one in TOOLS
    ]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


if __name__ == "__main__":
    RECORDED.write_text(shown_tools(), "utf-8")
