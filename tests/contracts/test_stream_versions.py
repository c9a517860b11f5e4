"""How long a stream was at a position, and its events by their versions."""

from collections import Counter

from domain.values.record import CONFIG_STREAM
from tests.support.builders.whole_story import activate, tell_everything
from tests.support.memory.served_log import ServedLog


async def test_at_every_position_a_stream_has_the_events_that_stand_up_to_there(
    running: ServedLog,
) -> None:
    await tell_everything(running)
    recorded = await running.events()
    streams = {one.envelope.stream for one in recorded}
    assert CONFIG_STREAM in streams
    known = Counter[str]()
    for one in recorded:
        known[one.envelope.stream] += 1
        for stream in (one.envelope.stream, CONFIG_STREAM):
            at = one.envelope.position
            assert await running.log.version_of(stream, at=at) == known[stream]
    for stream in streams:
        assert await running.log.version_of(stream, at=0) == 0
        assert await running.log.version_of(stream, at=len(recorded) + 7) == known[stream]
    assert await running.log.version_of("run:nobody", at=len(recorded)) == 0


async def test_an_event_is_found_by_its_place_in_its_stream(running: ServedLog) -> None:
    await tell_everything(running)
    for one in await running.events():
        stream, version = one.envelope.stream, one.envelope.version
        assert await running.log.event_of(stream, version) == one
    assert await running.log.event_of(CONFIG_STREAM, 3) is None
    assert await running.log.event_of("run:nobody", 1) is None


async def test_however_many_there_are_the_place_of_each_is_found(running: ServedLog) -> None:
    positions = []
    for _ in range(37):
        await activate(running)
        positions.append(await running.log.head())
    for revision, position in enumerate(positions, 1):
        assert await running.log.version_of(CONFIG_STREAM, at=position) == revision
        assert await running.log.version_of(CONFIG_STREAM, at=position - 1) == revision - 1
