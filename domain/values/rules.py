"""Rules that can refuse a spawn or a message, and choices that are explained beside them.

Each row has the recorded name, the status of its refusals, and when it applies.
`domain.spawn.stages` lists all of them in the order in which they are judged.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from pydantic import JsonValue

from domain.values.refusals import Refusal

RefusalStatus = Literal["forbidden", "error"]
F = TypeVar("F")


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule, or a choice that never refuses.

    Attributes:
        name: Name that is recorded.
        statuses: Possible statuses of its refusals, the usual one first; empty for a choice.
        when: When it refuses, or what it chooses, in words.
    """

    name: str
    statuses: tuple[RefusalStatus, ...]
    when: str

    def refusal(
        self,
        text: str,
        *,
        status: RefusalStatus | None = None,
        current: int | None = None,
        limit: int | None = None,
    ) -> Refusal:
        """Return a refusal by this rule.

        Args:
            text: Message for the caller.
            status: One of the rule's statuses; the first by default.
            current: Value that was compared, if any.
            limit: Limit that it was compared with, if any.
        """
        status = status or self.statuses[0]
        assert status in self.statuses
        return Refusal(self.name, status, text, current, limit)


@dataclass(frozen=True, slots=True)
class RuleFinding:
    """The values that a rule compared, and the comparison in words."""

    compared: dict[str, JsonValue]
    text: str


@dataclass(frozen=True, slots=True)
class TableRule(Generic[F]):
    """A row of an ordered rule table over one kind of facts.

    `refuses` returns the message for the caller if the rule refuses, else None.
    """

    rule: Rule
    refuses: Callable[[F], str | None]


def first_refusal(table: Iterable[TableRule[F]], facts: F) -> Refusal | None:
    """Return the refusal of the first rule that refuses, or None if all rules pass."""
    for row in table:
        text = row.refuses(facts)
        if text is not None:
            return row.rule.refusal(text)
    return None


_FORBIDDEN: tuple[RefusalStatus, ...] = ("forbidden",)
_ERROR: tuple[RefusalStatus, ...] = ("error",)
_EITHER: tuple[RefusalStatus, ...] = ("forbidden", "error")

# Admission.

AGENT_ID = Rule("agent_id", _ERROR, "the given agentId is not a valid agent id")
MODE = Rule("mode", _ERROR, "mode `session` is requested without a thread")
DEPTH = Rule("depth", _FORBIDDEN, "the requester is already at the maximum depth")
SPAWN_TOOL = Rule(
    "tools",
    _FORBIDDEN,
    "the tool policy of the requester's session denies `sessions_spawn`; a stop, message or"
    " yield that it denies is refused too and recorded as `ToolRefused`",
)
ACTIVE_CHILDREN = Rule(
    "active_children", _FORBIDDEN, "the requester has reached its limit of active children"
)
REQUIRE_AGENT_ID = Rule(
    "require_agent_id", _FORBIDDEN, "an agentId is required, but none was given"
)
ALLOW_AGENTS = Rule("allow_agents", _FORBIDDEN, "the requester may not spawn that agent")
SHARED_CONTEXT = Rule(
    "shared_context", _ERROR, "the shared context would be too large, or was erased"
)

# Dependencies and references.

DEPENDENCY_UNKNOWN = Rule("dependency_unknown", _ERROR, "no run of the tree has this name")
DEPENDENCY_AMBIGUOUS = Rule("dependency_ambiguous", _ERROR, "several sessions have this label")
DEPENDENCY_CYCLE = Rule(
    "dependency_cycle",
    _ERROR,
    "a dependency belongs to an ancestor session, or waits for a run of one",
)
DEPENDENCY_FAILED = Rule(
    "dependency_failed",
    _ERROR,
    "a dependency is over and has not ended as required",
)
REFERENCE_UNKNOWN = Rule("reference_unknown", _ERROR, "no run of the session has this name")
REFERENCE_AMBIGUOUS = Rule(
    "reference_ambiguous", _ERROR, "several runs of the session have this name"
)

# Eligibility of the agent that will run.

AGENT_UNKNOWN = Rule("agent_unknown", _ERROR, "the agent to run is not configured")
SANDBOX = Rule(
    "sandbox",
    _EITHER,
    "the child would be less isolated than its requester or the request demands (`forbidden`),"
    " or its runtime does not provide the required sandbox (`error`)",
)
THINKING = Rule("thinking", _ERROR, "the thinking level is invalid")
RUNTIME = Rule("runtime", _ERROR, "the agent has no runtime, or an unsupported one")
CREDENTIALS = Rule("credentials", _ERROR, "credentials of the agent are unavailable")
WORKSPACE = Rule("workspace", _ERROR, "the child's folder cannot be used or created")

# Steps of the preparation, in order.

THREAD_BINDING = Rule("thread_binding", _ERROR, "a thread was requested, but none was bound")
CONTEXT_FORK = Rule("context_fork", _ERROR, "a fork was requested, but cannot be created")
ATTACHMENTS = Rule(
    "attachments",
    _EITHER,
    "files are attached, but attachments are disabled (`forbidden`), or the files are invalid"
    " or cannot be written (`error`)",
)
CONTEXT_ENGINE = Rule("context_engine", _ERROR, "the context engine did not prepare the child")
STEPS = (THREAD_BINDING, CONTEXT_FORK, ATTACHMENTS, CONTEXT_ENGINE)

# Refusals at any time during the preparation.

STOPPED = Rule("stopped", _ERROR, "the spawn was stopped before its session was created")
ERASED = Rule("erased", _ERROR, "its texts were erased during the preparation")
BATCH = Rule("batch", _ERROR, "another task of its batch could not be prepared")

# Choices, explained between the rules in the order in which they are made.

WAITS_FOR = Rule("dependencies", (), "the runs that it waits for before it is queued")
CONTEXT_SCRIPTS = Rule("context_scripts", (), "the result of each context script")
OVERRIDE = Rule("override", (), "whether a script replaced the requested agent")
MODEL = Rule("model", (), "the model, of those that are set")
RUN_TIMEOUT = Rule("run_timeout", (), "the time limit of the run")
TOOLS = Rule("tool_policy", (), "the tools of the child")
CAPABILITIES = Rule("capabilities", (), "whether the child may spawn and control sub-agents")
PREAMBLE = Rule("preamble", (), "the length of the preamble that was passed")
