"""Results of reading a run's output."""

from collections.abc import Iterable
from functools import reduce

from domain.delivery.transcript import ParsedEntry, RuntimeReading


def read_entries(entries: Iterable[ParsedEntry]) -> RuntimeReading:
    return reduce(RuntimeReading.after, entries, RuntimeReading())
