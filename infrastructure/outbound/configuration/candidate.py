"""Configurations that are only thought of: read as a file would be, kept and used by nobody."""

from collections.abc import Mapping

from domain.configuration.configuration import Configuration
from infrastructure.outbound.configuration.load import configuration_from_stored, read_text
from infrastructure.outbound.configuration.secrets import redact
from infrastructure.outbound.configuration.validate import ConfigurationSource, check


class CandidateTexts:
    """Implements `CandidateReader`. Unlike a file it is not compared with what is on this machine:
    no path in it is looked at, and no variable of the environment is read."""

    def read(self, text: str, name: str) -> tuple[Configuration, Mapping[str, object]]:
        """A text of JSON5, in which references of a kept revision may stand."""
        document = read_text(text, name)
        check(document.values, ConfigurationSource(name, document), references_allowed=True)
        stored, _ = redact(document.values)
        return configuration_from_stored(stored), stored
