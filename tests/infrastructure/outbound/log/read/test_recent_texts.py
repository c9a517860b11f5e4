"""Texts that were just recorded are cached for a moment, in limited memory."""

from uuid import UUID, uuid4

from application.log.event_log import Content
from domain.values.record import ContentRef
from infrastructure.outbound.log.read.recent_texts import KEPT_BYTES_MAX, KEPT_SECONDS, RecentTexts


def content(text: str, size_bytes: int = 5) -> Content:
    ref = ContentRef(id=uuid4(), bytes=size_bytes, hmac="00")
    return Content(ref, UUID(int=0), "result", text)


def test_text_is_known_for_a_moment() -> None:
    now = 100.0
    texts, first = RecentTexts(lambda: now), content("first")
    texts.take([first])
    now += KEPT_SECONDS - 0.01
    assert texts.known([first.ref.id, uuid4()]) == {first.ref.id: "first"}
    now += 0.02
    assert texts.known([first.ref.id]) == {}


def test_next_texts_drop_those_of_earlier_moments() -> None:
    now = 100.0
    texts, first, second = RecentTexts(lambda: now), content("first"), content("second")
    texts.take([first])
    now += KEPT_SECONDS
    texts.take([second])
    now -= KEPT_SECONDS
    assert texts.known([first.ref.id, second.ref.id]) == {second.ref.id: "second"}


def test_large_texts_make_room() -> None:
    texts, first = RecentTexts(), content("first")
    large = content("large", KEPT_BYTES_MAX)
    texts.take([first, large])
    assert texts.known([first.ref.id, large.ref.id]) == {large.ref.id: "large"}
    larger = content("larger", KEPT_BYTES_MAX + 1)
    texts.take([larger])
    assert texts.known([large.ref.id, larger.ref.id]) == {}
