"""Tools offered to models, as recorded in a file. `make docs` writes it."""

import json
from pathlib import Path

from infrastructure.inbound.mcp.tools.catalogue import TOOLS

RECORDED = Path(__file__).parents[2] / "infrastructure/inbound/mcp/tools/tools.jsonl"


def shown_tools() -> str:
    """Return a line for each tool, with its schemas where a child can be bound to a thread."""
    lines = [
        {
            "name": tool.name,
            "title": tool.title,
            "description": tool.description,
            "scope": tool.scope,
            "reads": tool.reads,
            "destroys": tool.destroys,
            "inputSchema": tool.input_schema(threads=True),
            "outputSchema": tool.output_schema(),
        }
        for tool in TOOLS
    ]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


if __name__ == "__main__":
    RECORDED.write_text(shown_tools(), "utf-8")
