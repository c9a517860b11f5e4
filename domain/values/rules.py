"""Rules by which a spawn or a message can be refused, and choices that are explained beside them.

One row each: the name that is recorded, with which status it refuses, and when. In which order they
are judged is in `domain.spawn.stages`, which lists all of them.
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
    """`statuses` are those of its refusals, the usual one first; empty for a choice, which refuses
    nothing. `when` says when it refuses, or what is chosen."""

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
        """The refusal by this rule; `text` is what the caller is told."""
        status = status or self.statuses[0]
        assert status in self.statuses
        return Refusal(self.name, status, text, current, limit)


@dataclass(frozen=True, slots=True)
class RuleFinding:
    """What a rule compared, and that in words."""

    compared: dict[str, JsonValue]
    text: str


@dataclass(frozen=True, slots=True)
class TableRule(Generic[F]):
    """A row of an ordered table of rules over facts of one kind. `refuses` is the text for the
    caller when the rule refuses, else None."""

    rule: Rule
    refuses: Callable[[F], str | None]


def first_refusal(table: Iterable[TableRule[F]], facts: F) -> Refusal | None:
    """The refusal of the first rule of the table that refuses; None when none does."""
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

# What a spawn is to wait for.

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

# Whether the agent that will run is eligible.

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

# The steps of a preparation, in their order.

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

# What can refuse a spawn at any time of its preparation.

STOPPED = Rule("stopped", _ERROR, "the spawn was stopped before its session was created")
ERASED = Rule("erased", _ERROR, "the texts of its session were erased while it was prepared")
BATCH = Rule("batch", _ERROR, "another task of its batch could not be prepared")

# Choices: explained where they are made, between the rules.

WAITS_FOR = Rule("dependencies", (), "what the run waits for before it is queued")
CONTEXT_SCRIPTS = Rule("context_scripts", (), "what each context script did")
OVERRIDE = Rule("override", (), "whether a script put another agent in the place of the first")
MODEL = Rule("model", (), "which of the models that are named is taken")
RUN_TIMEOUT = Rule("run_timeout", (), "how long the run may take")
TOOLS = Rule("tool_policy", (), "which tools the child has")
CAPABILITIES = Rule("capabilities", (), "what the child may do to others")
PREAMBLE = Rule("preamble", (), "how much context its requester handed over")
