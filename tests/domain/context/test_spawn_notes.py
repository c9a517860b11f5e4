"""What a requester is told beside the acceptance."""

from domain.context.fork import RUN_NOTE, accepted_note, fork_downgraded_note

FORK = (
    "Parent context is too large to fork (170000/100000 tokens); "
    "starting with isolated context instead."
)


def test_a_run_is_announced_by_itself() -> None:
    assert accepted_note("run", "agent:main:main") == RUN_NOTE
    assert RUN_NOTE.startswith("Auto-announce is push-based.")


def test_a_session_stays() -> None:
    assert accepted_note("session", "agent:main:cron:job") == (
        "thread-bound session stays active after this task; continue in-thread for follow-ups."
    )


def test_a_scheduled_job_gets_no_note() -> None:
    assert accepted_note("run", "agent:main:cron:job-1") is None


def test_a_fork_that_was_not_made_is_mentioned() -> None:
    assert fork_downgraded_note(170_000) == FORK
    assert accepted_note("run", "agent:main:main", FORK) == f"{RUN_NOTE} {FORK}"
    assert accepted_note("run", "agent:main:cron:job-1", FORK) == FORK
