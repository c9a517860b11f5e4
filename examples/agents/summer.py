"""Sum a column of a table.

Its task is a sentence: `Sum amount of data/sales.csv`, or of some of its rows:
`Sum amount of data/sales.csv where region is north`.
"""

import csv
import json
import re
import sys
from decimal import Decimal, InvalidOperation
from pathlib import Path

TASK = re.compile(
    r"^Sum (?:the column )?(\w{1,80}) of ([\w./-]{1,200}?\.csv)"
    r"(?: where (\w{1,80}) is ([^\n]{1,80}?))?\.?$",
    re.MULTILINE,
)


def rows_of(name):
    """Return the rows of a table in the working directory or below it."""
    here = Path.cwd().resolve()
    path = (here / name).resolve()
    if here not in path.parents or not path.is_file():
        raise SystemExit(f"{name}: there is no such table")
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def number(row, column, place):
    """Return the number in a column. The error for any other value names its row."""
    try:
        return Decimal(row[column])
    except InvalidOperation:
        raise SystemExit(f'row {place}: "{row[column]}" is not a number') from None


def main():
    """Read the task from stdin, sum, answer."""
    task = TASK.search(json.load(sys.stdin)["message"])
    if task is None:
        raise SystemExit("no task for me; say: Sum amount of data/sales.csv where region is north")
    column, name, condition, value = task.groups()
    rows = rows_of(name)
    for asked in filter(None, (column, condition)):
        if rows and asked not in rows[0]:
            raise SystemExit(f'there is no column "{asked}"; there are: {", ".join(rows[0])}')
    kept = [row for row in rows if condition is None or row[condition].lower() == value.lower()]
    total = sum(number(row, column, place) for place, row in enumerate(kept, 1))
    of = f" where {condition} is {value}" if condition else ""
    print(f"{column} of {name}{of}: {total} in {len(kept)} rows")


if __name__ == "__main__":
    main()
