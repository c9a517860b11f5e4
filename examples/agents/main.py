"""Print the input of the run: the sections of its system prompt, the context it shares with
its family, and its message."""

import json
import os
import re
import sys


def main():
    """Read the whole input from stdin and print it."""
    told = json.load(sys.stdin)
    sections = re.findall(r"^#+ (.+)$", told["systemPrompt"], re.MULTILINE)
    shared = told.get("sharedContext") or {}
    depth = os.environ.get("SPAWNLOG_DEPTH", "?")
    print(f"I am {told['agentId']} at depth {depth}.")
    print(f"My system prompt speaks of: {', '.join(sections) or 'nothing'}.")
    for name in sorted(shared):
        print(f"I share {name}: {json.dumps(shared[name], ensure_ascii=False)}")
    print("My message:")
    print(told["message"])


if __name__ == "__main__":
    main()
