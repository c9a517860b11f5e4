"""What was said in a session that is not of ours: told whole, each time anew."""

from domain.session.decide import ProvideTranscript
from domain.session.events import TranscriptProvided
from domain.session.state import ProvidedTranscript
from tests.support.builders.storytelling import ROOT, given_session, observed, ref, run_id

PROVIDED = TranscriptProvided(entries=2, tokens=40, content=ref("said so far"), by=ROOT)


def provide(text: str = "said so far", tokens: int | None = 40) -> ProvideTranscript:
    """Two entries have been said."""
    return ProvideTranscript(entries=2, tokens=tokens, content=ref(text), by=ROOT)


def test_the_transcript_that_was_told_last_counts_and_where_it_was_told() -> None:
    story = given_session(observed(), PROVIDED)
    story.when(provide()).then()
    longer = story.when(provide("said so far and more")).then(TranscriptProvided)
    recounted = longer.when(provide("said so far and more", tokens=None)).then(TranscriptProvided)
    first, last = story.state, recounted.state
    assert first is not None
    assert last is not None
    assert first.transcript == ProvidedTranscript(
        entries=2, tokens=40, content=ref("said so far"), by=ROOT, position=2
    )
    assert last.transcript == ProvidedTranscript(
        entries=2, content=ref("said so far and more"), by=ROOT, position=4
    )


def test_the_same_text_kept_once_more_is_the_same_transcript() -> None:
    again = ref("said so far").changed({"id": run_id(99)})
    command = ProvideTranscript(entries=2, tokens=40, content=again, by="somebody")
    given_session(observed(), PROVIDED).when(command).then()
