"""What a requester is told beside the acceptance."""

from domain.context.fork import (
    INBOX_NOTE,
    RUN_NOTE,
    UNANNOUNCED_NOTE,
    accepted_note,
    fork_downgraded_note,
)
from domain.run.facts import Requester, SpawnOptions

FORK = (
    "Parent context is too large to fork (170000/100000 tokens); "
    "starting with isolated context instead."
)
RUN = SpawnOptions()
SESSION = SpawnOptions(mode="session")


def requester(key: str = "agent:main:main", *, may_yield: bool | None = None) -> Requester:
    return Requester(
        session_key=key,
        display_key=key,
        agent_id="main",
        depth=0,
        root_session_key=key,
        sandboxed=False,
        may_yield=may_yield,
    )


def test_a_session_that_can_yield_is_asked_to() -> None:
    assert accepted_note(RUN, requester(may_yield=True)) == RUN_NOTE
    assert RUN_NOTE.startswith("Auto-announce is push-based.")
    assert "call sessions_yield to end the turn and wait for completion events" in RUN_NOTE


def test_one_that_cannot_is_sent_to_its_inbox() -> None:
    for may_yield in (None, False):
        note = accepted_note(RUN, requester(may_yield=may_yield))
        assert note == INBOX_NOTE
        assert "sessions_yield" not in note


def test_who_expects_no_completion_is_not_asked_to_wait_for_it() -> None:
    options = SpawnOptions(expects_completion_message=False)
    assert accepted_note(options, requester(may_yield=True)) == UNANNOUNCED_NOTE


def test_a_session_stays() -> None:
    assert accepted_note(SESSION, requester("agent:main:cron:job")) == (
        "thread-bound session stays active after this task; continue in-thread for follow-ups."
    )


def test_a_scheduled_job_gets_no_note() -> None:
    assert accepted_note(RUN, requester("agent:main:cron:job-1")) is None


def test_a_fork_that_was_not_made_is_mentioned() -> None:
    assert fork_downgraded_note(170_000) == FORK
    assert accepted_note(RUN, requester(), FORK) == f"{INBOX_NOTE} {FORK}"
    assert accepted_note(RUN, requester("agent:main:cron:job-1"), FORK) == FORK
