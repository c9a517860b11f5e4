"""Commits that are made slower."""

import psycopg

from benchmarks.slow_commits import DELAY_MS, commit_ms, slowed_commits


def test_every_commit_takes_longer_for_the_time_of_the_block(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:

        def delay() -> object:
            return connection.execute("SHOW commit_delay").fetchone()

        assert delay() == ("0",)
        with slowed_commits(database_url):
            assert commit_ms(database_url) >= DELAY_MS
            assert delay() == (str(DELAY_MS * 1000),)
        assert delay() == ("0",)
