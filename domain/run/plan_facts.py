"""Facts that a child's plan was decided from, recorded with the plan or with the refusal."""

from typing import Literal

from domain.values.record import Fact
from domain.values.runtime_types import SandboxMode


class SandboxFacts(Fact):
    """Facts about the sandbox.

    Attributes:
        mode: The sandbox mode of the agent that will run.
        child_sandboxed: Whether that mode puts the child into a sandbox.
        runtime_provides: Whether the agent's runtime declares that it isolates its runs.
        required: Whether the request requires a sandbox.
    """

    mode: SandboxMode
    child_sandboxed: bool
    runtime_provides: bool
    requester_sandboxed: bool
    required: bool


class PreambleSizes(Fact):
    """Size of a preamble as given by the parent, and as kept within the limit."""

    given_characters: int
    given_bytes: int
    kept_characters: int
    kept_bytes: int
    characters_max: int


class ModelVerdict(Fact):
    """Verdict on one place where a model may be named, in order of precedence.

    `reference` is the name found there. It is None if the text there is not a model name; that text
    is kept beside the log.
    """

    source: str
    reference: str | None
    verdict: Literal["taken", "not_served", "no_name", "not_reached"]


class ThinkingFacts(Fact):
    """Thinking levels by place, in order of precedence; the first one is taken.

    `argument` is None if the given text is not a level; that text is kept beside the log.
    """

    argument: str | None = None
    agent_subagents: str | None = None
    defaults_subagents: str | None = None
    caller: str | None = None
    taken_from: str | None = None


class TimeoutFacts(Fact):
    """Requested timeout, as given, and the configured default, in seconds; 0 means no limit."""

    argument: float | None
    configured: int


class WorkspaceFacts(Fact):
    """Owner of the chosen folder. The path of a requested folder is stored beside the log.

    `recorded` is the recorded folder of the requester.
    """

    source: Literal["agent", "requester"]
    recorded: str | None
    chosen: str | None = None


class CredentialFacts(Fact):
    """Credential profiles found for the agent, and those that could not be resolved.

    `missing` holds ids of profiles, names of variables, and the name of an unusable profile file.
    Both are empty if the runtime receives no credentials.
    """

    profile_ids: tuple[str, ...]
    missing: tuple[str, ...] = ()


class PlanFacts(Fact):
    """All facts of one plan; each is None if the decision did not get that far."""

    agent_configured: bool | None = None
    sandbox: SandboxFacts | None = None
    models: tuple[ModelVerdict, ...] | None = None
    served_models: tuple[str, ...] | None = None
    thinking: ThinkingFacts | None = None
    run_timeout: TimeoutFacts | None = None
    runtime: str | None = None
    credentials: CredentialFacts | None = None
    workspace: WorkspaceFacts | None = None
