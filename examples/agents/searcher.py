"""Search the text files below a folder, and report each step as a line (output: jsonl).

Its task is a sentence: `Search for "low tide" in data`. It looks for the words as they stand, in
upper or lower case. Tokens are words here: those it reads are input, those it writes are output.
"""

import json
import re
import sys
from itertools import islice
from pathlib import Path

FILES_MAX = 1000
FILE_BYTES_MAX = 1_000_000
HITS_MAX = 50

TASK = re.compile(r'^Search for "([^"\n]{1,200})" in ([\w./-]{0,199}[\w/])\.?$', re.MULTILINE)


def say(kind, **fields):
    """Print one line of the transcript, without buffering."""
    print(json.dumps({"type": kind, **fields}), flush=True)


def files_below(folder):
    """Return the regular files below a folder of the working directory, in order."""
    here = Path.cwd().resolve()
    root = (here / folder).resolve()
    if root != here and here not in root.parents:
        raise SystemExit(f"{folder}: only folders below {here.name} are searched")
    if not root.is_dir():
        raise SystemExit(f"{folder}: there is no such folder")
    found = (path for path in sorted(root.rglob("*")) if path.is_file() and not path.is_symlink())
    return [path.relative_to(here) for path in islice(found, FILES_MAX)]


def hits_in(path, wanted):
    """Return the lines of a file with the text, and the number of words read."""
    if path.stat().st_size > FILE_BYTES_MAX:
        return [], 0
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError:
        return [], 0
    lines = enumerate(text.splitlines(), 1)
    found = [f"{path}:{number}: {line.strip()}" for number, line in lines if wanted in line.lower()]
    return found, len(text.split())


def main():
    """Read the task from stdin, search, answer."""
    task = TASK.search(json.load(sys.stdin)["message"])
    if task is None:
        raise SystemExit('no task for me; say: Search for "some words" in some/folder')
    wanted, folder = task.groups()
    files = files_below(folder)
    say("progress", text=f"{len(files)} files below {folder}")
    hits = []
    words_read = 0
    for path in files:
        found, words = hits_in(path, wanted.lower())
        words_read += words
        if found:
            say("tool", name="read_file", input={"path": str(path)}, output={"hits": len(found)})
            hits += found
    answer = "\n".join(hits[:HITS_MAX]) or f'"{wanted}" stands nowhere below {folder}'
    say("message", role="assistant", text=answer)
    say("usage", inputTokens=words_read, outputTokens=len(answer.split()), model="example/words")
    say("result", text=f'"{wanted}": {len(hits)} of it in {len(files)} files\n{answer}')


if __name__ == "__main__":
    main()
