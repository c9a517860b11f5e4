"""Much output is looked through beside the event loop, and what waits not too often."""

import threading
from collections.abc import Iterator

import pytest

from infrastructure.outbound.masking.mask import MaskedText, Masker
from infrastructure.outbound.runtimes.streams import AT_ONCE_BYTES_MAX, OutputThreads

SECRET = "".join(f"{number:04x}-" for number in range(800))


@pytest.fixture
def threads() -> Iterator[OutputThreads]:
    threads = OutputThreads()
    yield threads
    threads.close()


@pytest.mark.parametrize(
    ("size", "is_aside"), [(1, False), (AT_ONCE_BYTES_MAX, False), (AT_ONCE_BYTES_MAX + 1, True)]
)
async def test_much_is_looked_through_in_a_thread_of_its_own(
    threads: OutputThreads, size: int, is_aside: bool
) -> None:
    found = await threads.look(size, threading.get_ident)
    assert (found != threading.get_ident()) is is_aside


class Counted(Masker):
    """Counts how much it looks at."""

    looked_at = 0

    def look(self, text: str):  # type: ignore[no-untyped-def]
        self.looked_at += len(text)
        return super().look(text)


def test_the_beginning_of_a_value_is_not_looked_at_for_every_character_of_it() -> None:
    masking = Counted([SECRET])
    masked = MaskedText(masking)
    for sign in SECRET:
        masked.take(sign)
    assert masking.looked_at < 600 * len(SECRET)


@pytest.mark.parametrize("step", [1, 7, 1000])
def test_a_long_value_in_pieces_is_masked_all_the_same(step: int) -> None:
    text = f"before {SECRET} behind"
    masked = MaskedText(Masker([SECRET]))
    pieces = (text[begin : begin + step] for begin in range(0, len(text), step))
    told = "".join(masked.take(piece) for piece in pieces) + masked.finish()
    assert told == "before [redacted] behind"
