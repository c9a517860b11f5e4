"""The names of rules in answers."""

from typing import Annotated

from pydantic import WithJsonSchema

from domain.spawn.stages import CHOICES, RULE_NAMES

# A name is shown as it is on record, also one that a later release has recorded; the description of
# the API has those of this release.
RuleName = Annotated[str, WithJsonSchema({"type": "string", "enum": [*RULE_NAMES]})]
"""A rule by which a spawn or a message is refused."""

ExplainedName = Annotated[
    str,
    WithJsonSchema({"type": "string", "enum": [*RULE_NAMES, *(one.name for one in CHOICES)]}),
]
"""A rule or a choice, as an explanation has it."""
