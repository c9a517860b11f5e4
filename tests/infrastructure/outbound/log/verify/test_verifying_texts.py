"""What was done to texts and transcripts is found beside a right log."""

import pytest

from tests.support.builders.damaged_log import ToldLog
from tests.support.tiers import nightly_but

pytestmark = pytest.mark.server


def _one_text(told: ToldLog, kind: str) -> tuple[object, int]:
    """A text of this kind and the first position that refers to it."""
    ((content_id,), *_) = told.ask("SELECT content_id FROM contents WHERE kind = %s", kind)
    position = told.one(
        "SELECT min(position) FROM events WHERE convert_from(state, 'utf8') LIKE %s",
        f"%{content_id}%",
    )
    return content_id, position


KINDS = [
    *("task", "preamble", "result", "error", "reason", "system_prompt", "message", "text"),
    *("output", "injected", "ingredient", "configuration"),
    *("origin", "token", "manifest", "transcript"),
]


@pytest.mark.parametrize("kind", nightly_but(KINDS, KINDS[::4]))
def test_a_changed_text_is_named_with_its_run(told: ToldLog, kind: str) -> None:
    content_id, position = _one_text(told, kind)
    told.do("UPDATE contents SET body = 'X' || substr(body, 2) WHERE content_id = %s", content_id)
    assert told.found() == (position, "content")
    stream = told.one("SELECT stream FROM events WHERE position = %s", position)
    assert f"of {stream.replace('run:', 'run ')} (content {content_id}) was" in told.says()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("body = body || ' '", "was changed: it has "),
        ("body = upper(body)", "it is not the text that was recorded"),
        ("bytes = bytes + 1", "what is noted beside it was changed"),
        ("session_id = gen_random_uuid()", "what is noted beside it was changed"),
    ],
)
def test_it_is_said_what_is_wrong_with_a_text(told: ToldLog, change: str, words: str) -> None:
    content_id, position = _one_text(told, "result")
    told.do(f"UPDATE contents SET {change} WHERE content_id = %s", content_id)
    assert told.found() == (position, "content")
    assert told.says().startswith(f"position {position}: the result of run ")
    assert words in told.says()


def test_a_text_is_missing_unless_its_key_is_too(told: ToldLog) -> None:
    content_id, position = _one_text(told, "result")
    session_id = told.one("SELECT session_id FROM contents WHERE content_id = %s", content_id)
    told.do("DELETE FROM contents WHERE content_id = %s", content_id)
    assert told.found() == (position, "content")
    assert told.says().endswith("is missing, and the key of its session is still there")
    told.do("DELETE FROM content_keys WHERE session_id = %s", session_id)
    assert "the key of its session is gone, the text is not" in told.says()
    erased = told.do("DELETE FROM contents WHERE session_id = %s", session_id)
    verified = told.verify()
    assert verified.difference is None
    assert verified.checked.counts.erased == erased + 1 + 1, "the transcript is erased too"


def test_a_transcript_that_was_provided_is_erased_with_the_session_it_is_of(
    told: ToldLog,
) -> None:
    content_id, position = _one_text(told, "transcript")
    owner = told.one("SELECT session_id FROM contents WHERE content_id = %s", content_id)
    key = told.one("SELECT session_key FROM sessions WHERE session_id = %s LIMIT 1", owner)
    told.do("DELETE FROM contents WHERE content_id = %s", content_id)
    assert told.found() == (position, "content")
    assert f"the content of session:{key} (content {content_id}) is missing" in told.says()
    others = told.one("SELECT count(*) FROM contents WHERE session_id = %s", owner)
    told.do("DELETE FROM contents WHERE session_id = %s", owner)
    told.do("DELETE FROM content_keys WHERE session_id = %s", owner)
    verified = told.verify()
    assert verified.difference is None
    assert verified.checked.counts.erased == 1 + others


def test_a_changed_key_shows(told: ToldLog) -> None:
    told.do("UPDATE content_keys SET key = sha256(key)")
    assert told.found() == (1, "content")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("UPDATE {} SET body = replace(body, 'middle', 'muddle') WHERE {}", "not the ones"),
        ("UPDATE {} SET recorded_at = recorded_at + interval '1 s' WHERE {}", "not the ones"),
        ("UPDATE {} SET sequence = sequence + 10 WHERE {}", "it has 3 entries of"),
        ("DELETE FROM {} WHERE {} AND sequence = 2", "it has 2 entries of"),
        ("DELETE FROM {} WHERE {}", "it has 0 entries of 0 bytes and had 3 of"),
    ],
)
def test_a_changed_transcript_is_named(told: ToldLog, change: str, words: str) -> None:
    query = (
        "SELECT run_id, position FROM events WHERE type = 'RunEnded' ORDER BY 2 LIMIT 1 OFFSET 1"
    )
    ((run_id, position),) = told.ask(query)
    told.do(change.format("transcript_entries", "run_id = %s"), run_id)
    assert told.found() == (position, "transcript")
    assert told.says().startswith(f"position {position}: the transcript of run {run_id} was")
    assert words in told.says()


def test_texts_are_compared_in_bounded_batches(
    told: ToldLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    from infrastructure.outbound.log.verify import contents, transcripts

    whole = told.verify().checked
    monkeypatch.setattr(contents, "READ_BYTES_MAX", 400)
    monkeypatch.setattr(transcripts, "READ_BYTES_MAX", 400)
    assert told.verify().checked == whole
    mentioned = (
        "SELECT count(*) FROM contents WHERE EXISTS (SELECT FROM events"
        " WHERE position(content_id::text IN convert_from(state, 'utf8')) > 0)"
    )
    assert whole.counts.contents == told.one(mentioned)
    assert whole.counts.transcripts == told.one(
        "SELECT count(DISTINCT run_id) FROM transcript_entries"
    )
    assert whole.counts.erased == 0
