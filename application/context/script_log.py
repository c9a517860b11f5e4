"""Log lines about context scripts, in the detail that each script is configured for.

Inputs and outputs are logged as JSON strings, so that they cannot forge a log line, and with known
secrets masked.
"""

import json
import logging
from collections.abc import Iterable

from application.ports.scripts import Mask, ScriptFinished
from domain.configuration.context_scripts import ContextScript
from domain.configuration.secrets import without_url_secrets
from domain.context.agent_override import OverrideChoice, log_line
from domain.context.script_output import ScriptReading
from domain.values.json_text import compact_json
from domain.values.text import ELLIPSIS, single_line

OUTPUT_CHARACTERS_MAX = 16_384
MESSAGE_CHARACTERS_MAX = 300
_log = logging.getLogger("spawnlog.scripts")


def without_mask(text: str) -> str:
    """Return the text unchanged, where there are no secrets."""
    return text


class ScriptLog:
    """Logger for scripts. `mask` removes secrets from its lines."""

    def __init__(self, mask: Mask = without_mask) -> None:
        self._mask = mask

    def tell(self, script: ContextScript, finished: ScriptFinished, reading: ScriptReading) -> None:
        """Log the result of a script: one line if its `log` is true, everything if it is
        `"verbose"`.

        A failure and its reason are always logged.
        """
        if script.log == "verbose":
            for label, value in finished.called:
                shown = _escape_invisible(self._quoted(value))
                _log.info("[context-script] %s %s %s", script.id, label, shown)
            output = _escape_invisible(compact_json(self._short(finished.output)))
            _log.info("[context-script] %s output: %s", script.id, output)
        if reading.error is not None:
            self._log_failure(script, reading.error)
            return
        if script.log == "verbose" and reading.override is not None:
            proposed = single_line(self._mask(reading.override), characters_max=200)
            _log.info("[context-script] %s proposed agentIdOverride: %s", script.id, proposed)
        if script.log is not False:
            uri = without_url_secrets(script.uri)
            chars = len(reading.content or "")
            _log.info("[context-script] %s (%s) → %d chars", script.id, uri, chars)

    def tell_choice(self, scripts: Iterable[ContextScript], choice: OverrideChoice) -> None:
        """Log every proposal and the chosen agent, if a script's log is verbose."""
        line = log_line(choice, self._mask)
        if line is not None and any(script.log == "verbose" for script in scripts):
            _log.info("%s", line)

    def _log_failure(self, script: ContextScript, error: str) -> None:
        # Mask before cutting, because a cut secret would not be recognized.
        message = single_line(self._mask(error), characters_max=MESSAGE_CHARACTERS_MAX)
        _log.warning("[context-script] %s failed: %s", script.id, message)

    def _quoted(self, value: str | tuple[str, ...]) -> str:
        """Return the masked value as JSON. It is masked first, because quoting changes secrets."""
        if isinstance(value, str):
            return compact_json(self._short(value))
        quoted = compact_json([self._mask(item) for item in value])
        if len(quoted) <= OUTPUT_CHARACTERS_MAX:
            return quoted
        return quoted[:OUTPUT_CHARACTERS_MAX] + ELLIPSIS

    def _short(self, text: str) -> str:
        if len(text) <= OUTPUT_CHARACTERS_MAX:
            return self._mask(text)
        return self._mask(text[:OUTPUT_CHARACTERS_MAX]) + ELLIPSIS


def _escape_invisible(quoted: str) -> str:
    """Escape line ends and invisible characters in a JSON text."""
    if quoted.isprintable():
        return quoted
    return "".join(
        character if character.isprintable() else json.dumps(character)[1:-1]
        for character in quoted
    )
