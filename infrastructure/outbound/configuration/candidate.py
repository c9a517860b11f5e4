"""Hypothetical configurations: read like a file, but never stored or activated."""

from collections.abc import Mapping

from domain.configuration.configuration import Configuration
from infrastructure.outbound.configuration.load import configuration_from_stored, read_text
from infrastructure.outbound.configuration.secrets import redact
from infrastructure.outbound.configuration.validate import ConfigurationSource, check


class CandidateTexts:
    """Implementation of `CandidateReader`.

    Unlike a file, a candidate is not checked against this machine: no path is looked up, and no
    environment variable is read.
    """

    def read(self, text: str, name: str) -> tuple[Configuration, Mapping[str, object]]:
        """Parse a JSON5 text, which may contain `{"$secret": …}` references of a stored revision.

        Returns:
            The configuration, and its values with secrets redacted.

        Raises:
            ConfigurationError: The text is not a valid configuration.
        """
        document = read_text(text, name)
        check(document.values, ConfigurationSource(name, document), references_allowed=True)
        stored, _ = redact(document.values)
        return configuration_from_stored(stored), stored
