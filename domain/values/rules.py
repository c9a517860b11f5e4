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

AGENT_ID = Rule("agent_id", _ERROR, "what is given as agentId has not the form of an agent id")
MODE = Rule("mode", _ERROR, "mode `session` is asked for without a thread")
DEPTH = Rule("depth", _FORBIDDEN, "the requester is as deep as sessions may be")
SPAWN_TOOL = Rule(
    "tools",
    _FORBIDDEN,
    "the tool policy of the requester's session denies `sessions_spawn`; a stop, a message or a"
    " yield that it denies is refused too, and on record as `ToolRefused`",
)
ACTIVE_CHILDREN = Rule(
    "active_children", _FORBIDDEN, "the requester's session has not so many places for children"
)
REQUIRE_AGENT_ID = Rule(
    "require_agent_id", _FORBIDDEN, "an agentId is required, and none was given"
)
ALLOW_AGENTS = Rule("allow_agents", _FORBIDDEN, "the requester may not spawn that agent")
SHARED_CONTEXT = Rule(
    "shared_context", _ERROR, "the family would share too much, or what it shares was erased"
)

# Dependencies and references.

DEPENDENCY_UNKNOWN = Rule("dependency_unknown", _ERROR, "a name stands for no run of the tree")
DEPENDENCY_AMBIGUOUS = Rule(
    "dependency_ambiguous", _ERROR, "a name is the label of several sessions"
)
DEPENDENCY_CYCLE = Rule(
    "dependency_cycle",
    _ERROR,
    "a run that it would wait for is of a session above the spawn, or waits for one that is",
)
DEPENDENCY_FAILED = Rule(
    "dependency_failed",
    _ERROR,
    "a run that it depends on is over, and not as it is required to be",
)
REFERENCE_UNKNOWN = Rule("reference_unknown", _ERROR, "a name stands for no run of the session")
REFERENCE_AMBIGUOUS = Rule(
    "reference_ambiguous", _ERROR, "a name stands for several runs of the session"
)

# Eligibility of the agent that will run.

AGENT_UNKNOWN = Rule("agent_unknown", _ERROR, "the agent that would run is not configured")
SANDBOX = Rule(
    "sandbox",
    _EITHER,
    "the child would be less isolated than its requester or than was required (`forbidden`), or its"
    " runtime does not provide the sandbox that it has to be in (`error`)",
)
THINKING = Rule("thinking", _ERROR, "the word for a thinking level is none")
RUNTIME = Rule("runtime", _ERROR, "the agent has no runtime, or one that is not served")
CREDENTIALS = Rule("credentials", _ERROR, "credentials of the agent cannot be had")
WORKSPACE = Rule("workspace", _ERROR, "the child's folder cannot be used or made")

# Steps of the preparation, in order.

THREAD_BINDING = Rule("thread_binding", _ERROR, "a thread is asked for, and none was bound")
CONTEXT_FORK = Rule("context_fork", _ERROR, "a fork is asked for, and none can be made")
ATTACHMENTS = Rule(
    "attachments",
    _EITHER,
    "files are attached, and that is switched off (`forbidden`), or they cannot be taken or written"
    " (`error`)",
)
CONTEXT_ENGINE = Rule("context_engine", _ERROR, "the context engine did not prepare the child")
STEPS = (THREAD_BINDING, CONTEXT_FORK, ATTACHMENTS, CONTEXT_ENGINE)

# Refusals at any time during the preparation.

STOPPED = Rule("stopped", _ERROR, "the spawn was stopped before its session was created")
ERASED = Rule("erased", _ERROR, "the texts of its session were erased while it was prepared")
BATCH = Rule("batch", _ERROR, "another task of its batch could not be prepared")

# Choices, explained between the rules in the order in which they are made.

WAITS_FOR = Rule("dependencies", (), "what the run waits for before it is queued")
CONTEXT_SCRIPTS = Rule("context_scripts", (), "what each context script did")
OVERRIDE = Rule("override", (), "whether a script put another agent in the place of the first")
MODEL = Rule("model", (), "which of the models that are named is taken")
RUN_TIMEOUT = Rule("run_timeout", (), "how long the run may take")
TOOLS = Rule("tool_policy", (), "which tools the child has")
CAPABILITIES = Rule("capabilities", (), "what the child may do to others")
PREAMBLE = Rule("preamble", (), "how much context its requester handed over")
