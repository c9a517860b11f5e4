"""What can happen to the configuration."""

from domain.content import ContentRef
from domain.values.record import Event


class ConfigurationActivated(Event):
    """From here on decisions are made under this configuration.

    `revision` is this event's version in its stream; `content` its text with secrets replaced.
    """

    revision: int
    content: ContentRef
    source: str
    activated_by: str
