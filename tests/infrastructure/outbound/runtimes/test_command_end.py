"""How a command runtime ended, in words."""

import pytest

from application.ports.credentials import Credential
from application.ports.runtimes import RuntimeEnd
from domain.delivery.transcript import RuntimeReading
from infrastructure.outbound.child_processes.program import Exit
from infrastructure.outbound.runtimes.command import end_of, secrets_of
from tests.support.builders.launches import command, launch


def ended(exit_: Exit, stderr: str = "", too_much: str | None = None) -> RuntimeEnd:
    reading = RuntimeReading(last_result="r")
    return end_of(exit_, reading=reading, stderr=stderr, too_much=too_much)


@pytest.mark.parametrize(
    ("exit_", "outcome", "reason", "error"),
    [
        (Exit(code=0), "success", "exit", None),
        (Exit(code=3), "error", "exit", "exited with code 3: tail"),
        (Exit(signal=11), "error", "signal", "ended by signal SIGSEGV: tail"),
        (Exit(signal=40), "error", "signal", "ended by signal 40: tail"),
        (Exit(error="killed by its holder", killed=True), "stopped", "stopped", None),
        (
            Exit(error="its holder fell silent: killed after 15 seconds", killed=True),
            "error",
            "interrupted",
            "interrupted: its holder fell silent: killed after 15 seconds: tail",
        ),
        (Exit(error="the gate died"), "unknown", "interrupted", "the gate died: tail"),
    ],
)
def test_the_outcome_is_that_of_the_exit(
    exit_: Exit, outcome: str, reason: str, error: str | None
) -> None:
    end = ended(exit_, " tail\n")
    assert (end.outcome, end.reason, end.error) == (outcome, reason, error)
    assert (end.exit_code, end.signal, end.result) == (exit_.code, exit_.signal, "r")


def test_a_limit_counts_more_than_the_kill_that_followed() -> None:
    end = ended(Exit(error="killed", killed=True), too_much="it printed too much")
    assert (end.outcome, end.reason) == ("error", "output_limit")
    assert end.error == "ended because it printed too much"


def test_only_the_last_of_stderr_is_shown_and_no_character_is_cut() -> None:
    error = ended(Exit(code=1), "first" + "é" * 8000 + "last").error
    assert error is not None
    shown = error.removeprefix("exited with code 1: ")
    assert shown == "é" * 4094 + "last"


def test_secret_is_the_token_a_credential_and_what_is_named_like_one() -> None:
    launched = launch(
        command("agent"),
        environment={
            "OPENAI_API_KEY": "sk-12345678",
            "MODE": "verbosely",
            "OPENAI": Credential("given by a profile"),
            "EMPTY_TOKEN": "",
        },
    )
    assert secrets_of(launched) == (
        "sk-12345678",
        "given by a profile",
        "child-token-of-this-run",
    )
