"""What a child's plan was decided from, recorded with the decision; also with a refusal."""

from typing import Literal

from domain.values.record import Fact
from domain.values.runtime_types import SandboxMode


class SandboxFacts(Fact):
    """`mode` is that of the agent that will run, and `child_sandboxed` what it makes of the child;
    `runtime_provides` whether that agent's runtime says that it isolates what it executes."""

    mode: SandboxMode
    child_sandboxed: bool
    runtime_provides: bool
    requester_sandboxed: bool
    required: bool


class PreambleSizes(Fact):
    """How much a parent told its child, and how much of it was kept under the limit."""

    given_characters: int
    given_bytes: int
    kept_characters: int
    kept_bytes: int
    characters_max: int


class ModelVerdict(Fact):
    """One place where a model may be named, in their order. `reference` is the name that stands
    there; None when what stands there is no name of a model, which is kept beside the log."""

    source: str
    reference: str | None
    verdict: Literal["taken", "not_served", "no_name", "not_reached"]


class ThinkingFacts(Fact):
    """The levels that stand at each place, in their order; the first is taken. An argument that is
    no level is kept beside the log and None here."""

    argument: str | None = None
    agent_subagents: str | None = None
    defaults_subagents: str | None = None
    caller: str | None = None
    taken_from: str | None = None


class TimeoutFacts(Fact):
    """The limit that was asked for, as given, and the one that holds otherwise, in seconds; 0 is
    without limit."""

    argument: float | None
    configured: int


class WorkspaceFacts(Fact):
    """Whose folder was taken; `recorded` is the requester's on record. One that the request names
    is kept beside the log."""

    source: Literal["agent", "requester"]
    recorded: str | None
    chosen: str | None = None


class CredentialFacts(Fact):
    """The profiles that were found for the agent, by id, and what could not be resolved: ids of
    profiles, names of variables, and the name of a file of profiles that cannot be used. Both are
    empty for a runtime that is given no credentials."""

    profile_ids: tuple[str, ...]
    missing: tuple[str, ...] = ()


class PlanFacts(Fact):
    """Each is None when the decision did not come that far."""

    agent_configured: bool | None = None
    sandbox: SandboxFacts | None = None
    models: tuple[ModelVerdict, ...] | None = None
    served_models: tuple[str, ...] | None = None
    thinking: ThinkingFacts | None = None
    run_timeout: TimeoutFacts | None = None
    runtime: str | None = None
    credentials: CredentialFacts | None = None
    workspace: WorkspaceFacts | None = None
