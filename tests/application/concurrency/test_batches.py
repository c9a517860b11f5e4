"""What comes one by one is given out in batches, and nothing that came is lost with a source."""

from collections.abc import AsyncIterator

import pytest

from application.concurrency.batches import ItemBatch, iterate_batches


async def letters(text: str, failure: Exception | None = None) -> AsyncIterator[str]:
    for letter in text:
        yield letter
    if failure is not None:
        raise failure


def batches(source: AsyncIterator[str]) -> AsyncIterator[ItemBatch[str]]:
    return iterate_batches(source, size=2, seconds=60.0, weigh=lambda _: 1, weight=100)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", []), ("a", [(["a"], True)]), ("abc", [(["a", "b"], False), (["c"], True)])],
)
async def test_the_last_batch_is_what_is_left_when_the_source_is_over(
    text: str, expected: list[tuple[list[str], bool]]
) -> None:
    assert [tuple(one) async for one in batches(letters(text))] == expected


async def test_what_came_before_a_source_failed_is_given_out() -> None:
    found: list[ItemBatch[str]] = []

    async def gather() -> None:
        async for batch in batches(letters("abc", ValueError("broken"))):
            found.append(batch)

    with pytest.raises(ValueError, match="broken"):
        await gather()
    assert found == [(["a", "b"], False), (["c"], False)]
