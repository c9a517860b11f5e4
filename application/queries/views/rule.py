"""Names of rules in answers."""

from typing import Annotated

from pydantic import WithJsonSchema

from domain.spawn.stages import CHOICES, RULE_NAMES

# A recorded name is shown as it is, even if a later release recorded it; the OpenAPI document lists
# the names of this release.
RuleName = Annotated[str, WithJsonSchema({"type": "string", "enum": [*RULE_NAMES]})]
"""A rule that refuses a spawn or a message."""

ExplainedName = Annotated[
    str,
    WithJsonSchema({"type": "string", "enum": [*RULE_NAMES, *(choice.name for choice in CHOICES)]}),
]
"""A rule or a choice in an explanation."""
