"""The spawn whose context scripts are tried."""

from dataclasses import dataclass

from domain.run.facts import Cleanup


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptTrialOptions:
    """What a person says of it; `requester` is a session's key in any spelling."""

    agent: str
    task: str
    requester: str
    label: str | None = None
    cleanup: Cleanup | None = None
