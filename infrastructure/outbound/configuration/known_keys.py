"""Which keys a section has, and which key was probably meant."""

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from domain.configuration.agents import (
    Agent,
    AgentDefaults,
    AgentSubagents,
    Sandbox,
    SubagentDefaults,
)
from domain.configuration.problems import nearest_word
from domain.configuration.runtimes import CommandRuntime, ModelRuntime
from domain.configuration.session import SessionSection

# A stranger's key is only called a misspelling when it is this close to one of ours.
_MISSPELT_MIN = 0.8

# Keys of OpenClaw that resemble one of ours and are none.
_FOREIGN_KEYS: dict[type[BaseModel], frozenset[str]] = {
    Agent: frozenset({"models"}),
    SessionSection: frozenset({"dmScope"}),
    ModelRuntime: frozenset({"model"}),
}

# What belongs a level deeper and is easily written here.
_NOT_ONLY_IN_SUBAGENTS = frozenset({"model", "maxConcurrent", "thinking"})
_OF_ALL_AGENTS = "holds for all agents; it belongs into agents.defaults.subagents"
_OF_A_RUNTIME = CommandRuntime.model_fields["provides_sandbox"].alias


def keys_of(section: type[BaseModel]) -> dict[str, FieldInfo]:
    """The keys of a section as a file writes them, each with its field."""
    return {field.alias or name: field for name, field in section.model_fields.items()}


def is_open(section: type[BaseModel]) -> bool:
    """Whether other programs may have keys of their own in the section."""
    return section.model_config.get("extra") == "allow"


def complaint_about(key: str, section: type[BaseModel]) -> tuple[str, str | None] | None:
    """What is wrong with a key that the section does not have, and the key that was meant; None
    where it is another program's."""
    if section in (Agent, AgentDefaults) and _belongs_in_subagents(key):
        if section is Agent and key not in keys_of(AgentSubagents):
            return _OF_ALL_AGENTS, None
        return 'belongs into "subagents"', None
    if section in (Agent, AgentDefaults, Sandbox) and key == _OF_A_RUNTIME:
        return 'belongs into "runtime"', None
    if section is AgentSubagents and key in keys_of(SubagentDefaults):
        return _OF_ALL_AGENTS, None
    if not is_open(section):
        return "unknown key", nearest_word(key, keys_of(section))
    if key in _FOREIGN_KEYS.get(section, ()):
        return None
    meant = nearest_word(key, keys_of(section), _MISSPELT_MIN)
    return None if meant is None else ("unknown key", meant)


def _belongs_in_subagents(key: str) -> bool:
    ours = key in keys_of(SubagentDefaults) or key in keys_of(AgentSubagents)
    return ours and key not in _NOT_ONLY_IN_SUBAGENTS
