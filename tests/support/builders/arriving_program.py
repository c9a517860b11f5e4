"""A process of its own that lets ships arrive in a harbour: <harbour id> <prefix> <count>.

It prints a line when it is ready, begins when it is told to by one on its input, and then prints
the position of each arrival.
"""

import sys
from uuid import UUID

from tests.support.builders.harbours import Harbours


def main(harbour: str, prefix: str, count: str) -> None:
    """Let them come."""
    with Harbours() as harbours:
        print("ready", flush=True)
        sys.stdin.readline()
        for number in range(int(count)):
            position = harbours.arrive_in_the_end(UUID(harbour), f"{prefix}-{number}")
            print(position, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
