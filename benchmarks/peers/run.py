"""Comparison with peers: `python -m benchmarks.peers.run`. Limited in time, on its own data.

Each contender lives the same life of three steps on the same disk, in turns.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.peers.contenders import CONTENDERS, OWN, Cell, Contender, Lives, Place, started
from benchmarks.peers.environments import PeerMissing
from benchmarks.peers.summary import peers_document, peers_table, summaries
from benchmarks.processor import postmaster_of
from benchmarks.run import machine
from infrastructure.server.database import open_database

ROUNDS_MAX = 50
SECONDS_MAX = 60.0
CALLERS_MAX = 128
PEERS = sorted({contender.peer for contender in CONTENDERS if contender != OWN})
RULES = (
    "a round is one cell of each contender; the next round begins with another one, so that none"
    " always comes first, and what the machine does meanwhile falls on all of them",
    "each cell is warmed for half a second, then measured; lives that began in time are counted",
    "every PostgreSQL is the embedded one with its own settings: a commit is on disk when it is"
    " answered; spawnlog has a server of its own, the peers share another one",
    "all contenders are up all the time; those whose turn it is not do what they do when idle",
    "over HTTP one client asks all of them, in this process, over kept connections; in process the"
    " peer's program measures itself, which spares it a request and a client",
    "releases are pinned, telemetry is off, and settings are those of the peer's own documents",
    "CPU is milliseconds of a core for each life, of the whole process tree: the server, or the"
    " program that lives the lives, and its database (Restate's server for Restate); the PostgreSQL"
    " that peers share counts what the idle ones ask of it too",
    "a life is not the same work: what each writes stands beside its name",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and store the figures. Return 1 if a requested contender is missing."""
    options = _options(arguments)
    began, load_before = time.monotonic(), round(os.getloadavg()[0], 1)
    chosen = [
        contender for contender in CONTENDERS if contender == OWN or contender.peer in options.peers
    ]
    rounds: dict[tuple[Contender, int], list[Lives]] = {}
    missing: dict[str, str] = {}
    folder = Path(tempfile.mkdtemp(prefix="spawnlog-peers-"))
    # The embedded server may run as another user, who has to pass through here.
    folder.chmod(0o711)
    try:
        with ExitStack() as opened:
            home = folder / "postgres"
            database = open_database(None, home)
            opened.callback(database.close)
            environments = options.environments.absolute()
            place = Place(folder, environments, database.conninfo, postmaster_of(home))
            cells: dict[Contender, Cell] = {}
            for item in chosen:
                try:
                    cells[item] = opened.enter_context(started(item, place))
                except (PeerMissing, RuntimeError) as error:
                    _miss(item, error, missing)
            for number in range(options.rounds):
                _measure_round(number, cells, options, rounds, missing)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    found = summaries(rounds)
    print(f"{peers_table(found)}\n")
    for item in chosen:
        print(f"- {item.name}: {missing.get(item.name) or item.work}")
    for rule in RULES:
        print(f"- {rule}")
    print(f"- before it began the machine had a load of {load_before}; it should have none")
    name = f"peers-{time.strftime('%Y%m%dT%H%M%S')}.json"
    output = options.output or Path(".build/benchmarks") / name
    output.parent.mkdir(parents=True, exist_ok=True)
    result = machine() | {"loadBefore": load_before}
    made = peers_document(found, rounds, missing, result, RULES)
    output.write_text(json.dumps(made, indent=2) + "\n", "utf-8")
    print(f"measured in {time.monotonic() - began:.0f} s, written to {output}")
    return 1 if missing else 0


def _miss(contender: Contender, error: Exception, missing: dict[str, str]) -> None:
    missing[contender.name] = str(error)
    print(f"NOT MEASURED: {contender.name}: {error}", file=sys.stderr)


def _measure_round(
    number: int,
    cells: dict[Contender, Cell],
    options: argparse.Namespace,
    rounds: dict[tuple[Contender, int], list[Lives]],
    missing: dict[str, str],
) -> None:
    first = number % max(1, len(cells))
    order = list(cells)
    for callers in options.callers:
        for item in order[first:] + order[:first]:
            if item not in cells:
                continue
            try:
                found = cells[item](callers, options.seconds)
            except (RuntimeError, OSError, TimeoutError, EOFError, ExceptionGroup) as error:
                # Its further cells would fail as well, and those of the others are worth having.
                del cells[item]
                _miss(item, error, missing)
                continue
            rounds.setdefault((item, callers), []).append(found)
            print(
                f"round {number + 1}, {callers} callers, {item.name}:"
                f" {found.timing.per_second:.0f}/s",
                file=sys.stderr,
            )


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="how often each cell is measured")
    parser.add_argument("--seconds", type=float, default=3.0, help="length of each cell")
    parser.add_argument("--callers", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=PEERS)
    parser.add_argument(
        "--environments", type=Path, default=Path(".build/peers"), help="where peers are installed"
    )
    parser.add_argument("--output", type=Path, default=None, help="JSON file to write")
    options = parser.parse_args(arguments)
    if not 0 < options.rounds <= ROUNDS_MAX:
        parser.error(f"--rounds must be from 1 to {ROUNDS_MAX}")
    if not 0 < options.seconds <= SECONDS_MAX:
        parser.error(f"--seconds must be more than 0 and at most {SECONDS_MAX:.0f}")
    if not all(0 < count <= CALLERS_MAX for count in options.callers):
        parser.error(f"--callers must be from 1 to {CALLERS_MAX}")
    return options


if __name__ == "__main__":
    sys.exit(main())
