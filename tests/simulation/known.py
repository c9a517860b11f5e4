"""Lives in which something shows that is known to be wrong in the product and not mended yet."""

from collections.abc import Iterable

from tests.simulation.simulate import play

KNOWN: dict[int, tuple[str, ...]] = {
    338: ("run edd7c365-a7c4-4064-80c8-a20472c55c31 was sealed at 0 entries and has 2",),
    754: ("run 2e07fb28-aab2-4ea5-b403-4e9c6f6a815c was sealed at 0 entries and has 2",),
    1186: ("run 81c3fa66-e167-4c47-8f75-bd978cd19101 was sealed at 0 entries and has 1",),
    1295: ("run 08806314-70f4-4449-a5e6-9b506d18623c was sealed at 0 entries and has 1",),
    1873: ("run 052c9526-f4f9-4623-be05-bb171d3fe62e was sealed at 0 entries and has 2",),
    1916: ("run 3ac7cd3c-6346-4269-81bc-49ab012546fe was sealed at 0 entries and has 1",),
}
"""All that is wrong in them, by seed. Recovery seals a transcript and ends the run under the epoch
of the holder that is gone; one that was only frozen writes in between. A life that does not show
it any more is taken out."""


def unexpected_findings(seeds: Iterable[int]) -> dict[int, tuple[str, ...]]:
    """What is wrong in each of these lives, if that is not what is known of it."""
    found = {seed: play(seed).wrong for seed in seeds}
    return {seed: wrong for seed, wrong in found.items() if wrong != KNOWN.get(seed, ())}
