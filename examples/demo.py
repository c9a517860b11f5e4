"""Show on real runs what spawnlog does: start a server, spawn a small family, tell its story, stop.

    .venv/bin/python examples/demo.py [DATA_DIR]      (`make demo` runs it)

The data is kept in DATA_DIR, else removed. The exit status is 0 if all went as the story says.
"""

import argparse
import base64
import contextlib
import inspect
import json
import os
import re
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from spawnlog import Client, RunFailedError, SpawnRefusedError
from spawnlog.family import Family

EXAMPLES = Path(__file__).resolve().parent
COMMAND = Path(sys.executable).with_name("spawnlog")
DEMO_SECONDS_MAX = 300
STOP_SECONDS_MAX = 60
RESULT_LINES_MAX = 12
CHILDREN_CAP = "/agents/defaults/subagents/maxChildrenPerAgent"

LineAfter = Callable[[str], str]


def tell_plain_run(family: Family, line_after: LineAfter) -> None:
    """A plain run

    Requested, prepared, queued, started, ended, announced.
    """
    run = family.spawn(
        "Count the words of data/harbour.txt", agent_id="counter", label="harbour-words"
    )
    show("result", run.result())
    show_events(run.run_id)


def tell_alias(family: Family, line_after: LineAfter) -> None:
    """An alias

    No agent is called steward. A context script knows which agent has that name and brings the
    charter.
    """
    run = family.spawn("Say who you are", agent_id="steward")
    show("result", run.result())
    show_events(run.run_id)


def tell_dependencies(family: Family, line_after: LineAfter) -> None:
    """Two in parallel, and one that waits

    Two tasks of one request share a goal. A third run waits for both and gets their results.
    """
    counts = family.spawn_all(
        ["Count the words of data/harbour.txt", "Count the words of data/tides.txt"],
        agent_id="counter",
        label="count",
        shared_context={"goal": "which text is longer"},
    )
    summary = family.spawn(
        "Tell what is known",
        agent_id="main",
        label="summary",
        shared_context={"$count-1": "reference", "$count-2": "reference"},
    )
    for run in (*counts, summary):
        show(f"result of {run.refresh().label}", run.result())
    show_events(summary.run_id)


def tell_orchestrator(family: Family, line_after: LineAfter) -> None:
    """An orchestrator with the tools of a model

    It hands its task out and ends its turn. The reports of its sub-agents wake it.
    """
    run = family.spawn(
        "Ask counter: Count the words of data/harbour.txt\n"
        "Ask counter: Count the words of data/tides.txt",
        agent_id="editor",
        label="edition",
    )
    run.wait("announced")
    tools = [entry.body["name"] for entry in run.transcript(tools=True) if entry.kind == "tool"]
    print(f"  tools it used: {', '.join(tools)}")
    show_events(run.run_id)
    print("\n  Another run continues its session:")
    show("result", run.result())
    show_events(run.run_id)


def tell_steering(family: Family, line_after: LineAfter) -> None:
    """A run that is steered

    A message ends the run at work and continues in its place.
    """
    run = family.spawn("Sleep for 60 seconds", agent_id="sleeper", label="steered")
    run.wait("started")
    following = run.steer("Sleep for 0 seconds")
    show("result", following.result())
    show_events(run.run_id)


def tell_webhook(family: Family, line_after: LineAfter) -> None:
    """A result that is posted in a chat

    A webhook sends it, signed, to a gateway, which posts it where the request came from.
    """
    chat = family.client.session({**family.requester, "channel": "harbour", "to": "channel:7"})
    run = chat.spawn("Count the words of data/tides.txt", agent_id="counter")
    run.wait("announced")
    post = json.loads("{" + line_after("{"))
    show(f"posted to {post['to']}", post["text"])
    # The server records the delivery when it has the gateway's answer.
    with family.client.follow_events(
        after=0, types=["EffectAttempted"], run_id=run.run_id
    ) as events:
        next(events)
    show_events(run.run_id)


def tell_ends(family: Family, line_after: LineAfter) -> None:
    """Other ends

    A run fails by its exit status, one exceeds its time limit of a second, one is stopped, and one
    is archived as soon as it is announced.
    """
    failing = family.spawn("Open the harbour", agent_id="failing", label="failing")
    slow = family.spawn(
        "Sleep for 60 seconds", agent_id="sleeper", label="slow", run_timeout_seconds=1
    )
    stopped = family.spawn("Sleep for 60 seconds", agent_id="sleeper", label="stopped")
    stopped.wait("started")
    stopped.stop("the demo has seen enough")
    for run in (failing, slow, stopped):
        try:
            unexpected = run.result()
        except RunFailedError as failure:
            print(f"  {failure}")
        else:
            sys.exit(f"run {run.run_id} should have failed: {unexpected}")
    family.spawn(
        "Count the words of data/tides.txt", agent_id="counter", label="deleted", cleanup="delete"
    ).wait("archived")
    show_command("run", "list", "--requester", family.key)


def tell_refusal(family: Family, line_after: LineAfter) -> None:
    """A refusal, and looking back

    A session may have five active children. The sixth is refused, which is recorded too. Later:
    when was the cap hit, what was at work then, and what if the cap had been larger?
    """
    client = family.client
    naps = family.spawn_all(["Sleep for 60 seconds"] * 5, agent_id="sleeper", label="nap")
    for nap in naps:
        nap.wait("started")
    try:
        family.spawn("Count the words of data/tides.txt", agent_id="counter")
        sys.exit("the sixth child should have been refused")
    except SpawnRefusedError as problem:
        refusal = problem
    show("refused", refusal.detail)
    show_events(str(refusal.run_id))
    for nap in naps:
        nap.stop("the demo has seen enough")
    for nap in naps:
        nap.wait("announced")

    print("\n  The five are stopped; the record still knows:")
    found = next(client.found_events(rule=refusal.rule, session=family.key))
    print(f"  the first refusal by {refusal.rule} is at position {found.position}")
    active = client.runs(requester=family.key, status=["running"], at=f"pos:{found.position}")
    print(f"  at work then: {', '.join(sorted(str(run.label) for run in active))}")
    for decision in client.explain_run(found.run_id).decisions:
        if decision.rule == refusal.rule:
            print(f"  why: {decision.rule} {decision.result}: {decision.text}")
    change = {"op": "replace", "path": CHILDREN_CAP, "value": 6}
    *_, last = client.what_if(patch=[change], filter={"requester": family.key})
    verdicts = [f"{count} {name}" for name, count in last.totals.by_verdict.items() if count]
    print(f"  what if {CHILDREN_CAP} were 6: {', '.join(verdicts)}")

    print("\n  Now there is room. The same request is spawned again:")
    again = client.respawn(found.run_id, changes={"label": "once-more"})
    show("result", client.run(again.run_id).result())
    show_events(again.run_id)


STORIES = (
    tell_plain_run,
    tell_alias,
    tell_dependencies,
    tell_orchestrator,
    tell_steering,
    tell_webhook,
    tell_ends,
    tell_refusal,
)


def tell_stories(client: Client, line_after: LineAfter) -> None:
    """Tell each story in a session of its own; `line_after` reads what the gateway prints."""
    for number, tell in enumerate(STORIES, 1):
        title, _, about = inspect.getdoc(tell).partition("\n\n")
        print(f"\n{number}. {title}\n{textwrap.indent(about, '  ')}\n", flush=True)
        tell(client.session(f"agent:main:demo-{number}"), line_after)


def show(heading: str, text: str | None) -> None:
    """Print the first lines of a result."""
    lines = str(text).strip().split("\n")
    more = ["…"] if len(lines) > RESULT_LINES_MAX else []
    print(f"  {heading}: " + "\n    ".join(lines[:RESULT_LINES_MAX] + more))


def show_events(run_id: str) -> None:
    """Print the events of a run."""
    show_command("run", "events", run_id[:8])


def show_command(*arguments: str) -> None:
    """Run a command of spawnlog as a user would, and show what it prints."""
    print(f"\n$ spawnlog {' '.join(arguments)}", flush=True)
    subprocess.run([COMMAND, *arguments], check=True)


@contextlib.contextmanager
def running(output: Path, *command: str | Path) -> Iterator[LineAfter]:
    """Run a program while the block runs.

    Yields:
        Function that waits for a line with a given beginning in the program's output, and returns
        the rest of that line.
    """
    with output.open("w") as file:
        program = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            # Ctrl-C is for the demo, which then stops its programs.
            start_new_session=True,
        )

    def line_after(beginning: str) -> str:
        while True:
            is_running = program.poll() is None
            text = output.read_text("utf-8", "replace")
            if line := re.search(rf"^{re.escape(beginning)}(.*)\n", text, re.MULTILINE):
                return line[1]
            if not is_running:
                sys.exit(f"{command[0]} ended with status {program.returncode}:\n{text[-4000:]}")
            time.sleep(0.1)

    try:
        yield line_after
    finally:
        program.terminate()
        try:
            program.wait(STOP_SECONDS_MAX)
        finally:
            program.kill()


def end(number: int, _frame: object) -> None:
    """End the demo on a signal, so that it stops its programs and removes its files."""
    if number == signal.SIGALRM:
        sys.exit(f"the demo took longer than {DEMO_SECONDS_MAX} s")
    sys.exit(128 + number)


def switched_on(place: Path) -> Path:
    """Copy the examples. Return the copied configuration, with its webhook switched on."""
    config = shutil.copytree(EXAMPLES, place / "examples") / "spawnlog.json5"
    text = config.read_text("utf-8")
    config.write_text(text.replace("// announce:", "announce:"), "utf-8")
    return config


def main() -> None:
    """Run the demo."""
    parser = argparse.ArgumentParser(description="Show on real runs what spawnlog does.")
    parser.add_argument("data_dir", nargs="?", type=Path, help="keep the data here")
    kept = parser.parse_args().data_dir
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM):
        signal.signal(number, end)
    signal.alarm(DEMO_SECONDS_MAX)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")
    with tempfile.TemporaryDirectory(prefix="spawnlog-demo-") as name:
        place = Path(name)
        data = kept.resolve() if kept else place / "data"
        # Settings of this user's own server are not for the demo. All programs inherit these.
        for setting in [name for name in os.environ if name.startswith("SPAWNLOG_")]:
            del os.environ[setting]
        os.environ["SPAWNLOG_DATA_DIR"] = str(data)
        os.environ["CHAT_SECRET"] = f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}"
        gateway = (sys.executable, EXAMPLES / "gateway.py", "--port", "0")
        server = (COMMAND, "serve", "--config", switched_on(place), "--port", "0")
        with running(place / "gateway.txt", *gateway) as gateway_line_after:
            os.environ["CHAT_URL"] = gateway_line_after("gateway ready on ")
            print("Starting a server. The first start makes its database ...", flush=True)
            with running(place / "server.txt", *server) as server_line_after:
                print(f"The server is ready on {server_line_after('spawnlog ready on ')}.")
                with Client() as client:
                    tell_stories(client, gateway_line_after)
    variable = f" SPAWNLOG_DATA_DIR={shlex.quote(str(data))}" if kept else ""
    print(
        f"""
To look further:
  export PATH={shlex.quote(str(COMMAND.parent))}:"$PATH"{variable}
  spawnlog serve --config {shlex.quote(str(EXAMPLES / "spawnlog.json5"))}
and in another terminal, after the same export:
  spawnlog spawn "Count the words of data/harbour.txt" --agent counter --wait
  spawnlog run list
  spawnlog run events last
  spawnlog run prompt last
  spawnlog event list --follow"""
    )


if __name__ == "__main__":
    main()
