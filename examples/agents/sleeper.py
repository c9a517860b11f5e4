"""Sleep: for runs that are stopped, time out, or wait in a lane.

Its task is a sentence: `Sleep for 30 seconds`.
"""

import json
import re
import sys
import time

SECONDS_DEFAULT = 60
SECONDS_MAX = 3600
STEP_SECONDS = 0.25


def main():
    """Read the task from stdin, sleep in small steps, and print the progress each second."""
    task = re.search(r"\bSleep for (\d{1,4}) seconds?\b", json.load(sys.stdin)["message"])
    seconds = min(int(task.group(1)) if task else SECONDS_DEFAULT, SECONDS_MAX)
    started = time.monotonic()
    told = -1
    while (slept := time.monotonic() - started) < seconds:
        if int(slept) > told:
            told = int(slept)
            print(json.dumps({"type": "progress", "text": f"{told} of {seconds} s"}), flush=True)
        time.sleep(min(STEP_SECONDS, seconds - slept))
    print(json.dumps({"type": "result", "text": f"slept for {seconds} s"}), flush=True)


if __name__ == "__main__":
    main()
