"""What mode and cleanup a spawn gets."""

from domain.spawn.request import effective_cleanup, effective_mode


def test_a_thread_makes_a_session_unless_a_mode_was_asked_for() -> None:
    assert effective_mode(None, thread=True) == "session"
    assert effective_mode(None, thread=False) == "run"
    assert effective_mode("run", thread=True) == "run"
    assert effective_mode("session", thread=False) == "session"


def test_a_session_that_lives_on_is_kept() -> None:
    assert effective_cleanup("delete", "session") == "keep"
    assert effective_cleanup("delete", "run") == "delete"
    assert effective_cleanup(None, "run") == "keep"
