"""Shifts made by several processes, ready to be stored except for the hash chain."""

import gc
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from benchmarks.history.simulation import RESERVE_EVENTS, LengthMissed, Shift, Simulation
from benchmarks.history.storage.event_rows import copied, event_rows
from benchmarks.history.storage.tables import GatheredRows
from benchmarks.history.world.identities import CONTENT_KEY_BYTES
from benchmarks.history.world.simulated_log import Beginning

# Long past, so that later appends of a real server have later times.
START = datetime(2025, 1, 6, 6, tzinfo=UTC)
SHIFT_HOURS = 3
SHIFT_EVENTS = 20_000
CHUNK_EVENTS = 4_000
ATTEMPTS_MAX = 6


@dataclass(slots=True)
class MadeShift:
    """The rows of one shift, encoded. `events` lack their last column, the hash, which covers
    `rests` and the hash before."""

    last_position: int
    recorded_at: datetime
    events: list[bytes] = field(default_factory=list)
    rests: list[bytes] = field(default_factory=list)
    others: dict[str, list[bytes]] = field(default_factory=dict)


def planned(events: int, seed: int, log_id: UUID) -> list[Shift]:
    """Return shifts of about equal length with this many events in all."""
    count = max(1, round(events / SHIFT_EVENTS))
    log_key = random.Random(seed).randbytes(CONTENT_KEY_BYTES)
    shifts: list[Shift] = []
    position = 0
    for number in range(count):
        length = events // count + (number < events % count)
        at = START + timedelta(hours=SHIFT_HOURS * number)
        shifts.append(Shift(number, seed, Beginning(position, number, at), length, log_id, log_key))
        position += length
    return shifts


def made(shift: Shift, kinds: Mapping[str, Sequence[str]]) -> MadeShift:
    """Return the rows of a shift. `kinds` are the column types of each table."""
    # Hardly anything here is part of a circle, and there is much of it to look through.
    gc.disable()
    try:
        for attempt in range(ATTEMPTS_MAX):
            try:
                return _made(replace(shift, reserve_events=RESERVE_EVENTS * 4**attempt), kinds)
            except LengthMissed:
                continue
    finally:
        gc.enable()
    raise LengthMissed(f"no shift of {shift.events} events can be made; ask for more")


def _made(shift: Shift, kinds: Mapping[str, Sequence[str]]) -> MadeShift:
    rows = GatheredRows()
    simulation = Simulation(shift, rows)
    result = MadeShift(shift.beginning.position + shift.events, shift.beginning.at)
    while not simulation.is_over:
        simulation.step()
        if len(rows.events) >= CHUNK_EVENTS:
            _encode(rows, kinds, result)
    rows.forget_all()
    _encode(rows, kinds, result)
    end = shift.beginning.at + timedelta(hours=SHIFT_HOURS)
    if result.recorded_at >= end:
        raise RuntimeError(f"shift {shift.number} went on until {result.recorded_at}, past {end}")
    return result


def _encode(rows: GatheredRows, kinds: Mapping[str, Sequence[str]], result: MadeShift) -> None:
    """Take the gathered rows, and append them to `result` in their encoded form."""
    if rows.events:
        result.events += event_rows(rows.events)
        result.rests += [b"".join(row.fields) for row in rows.events]
        result.recorded_at = rows.events[-1].envelope.recorded_at
    for table, columns in rows.taken().items():
        result.others.setdefault(table, []).append(copied(kinds[table], columns))
