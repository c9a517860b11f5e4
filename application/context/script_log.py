"""What the log of the server says of context scripts: as much as each of them asks for.

What a script was given and what it said stand in the log as JSON strings, so that no line of it can
be forged, and without the secrets that are known here.
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
    """For where there are no secrets."""
    return text


class ScriptLog:
    """Tells the log, without what `mask` takes out."""

    def __init__(self, mask: Mask = without_mask) -> None:
        self._mask = mask

    def tell(self, script: ContextScript, finished: ScriptFinished, reading: ScriptReading) -> None:
        """One line of what came of a script when its `log` is true, all of it with `"verbose"`;
        its failure, with the reason, in any case."""
        if script.log == "verbose":
            for word, what in finished.called:
                shown = _escape_invisible(self._quoted(what))
                _log.info("[context-script] %s %s %s", script.id, word, shown)
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
        """Every proposal and who won, when a script asks for all there is."""
        line = log_line(choice, self._mask)
        if line is not None and any(script.log == "verbose" for script in scripts):
            _log.info("%s", line)

    def _log_failure(self, script: ContextScript, error: str) -> None:
        # Masked before it is cut, or half of a secret would be none.
        message = single_line(self._mask(error), characters_max=MESSAGE_CHARACTERS_MAX)
        _log.warning("[context-script] %s failed: %s", script.id, message)

    def _quoted(self, what: str | tuple[str, ...]) -> str:
        """As JSON, once it is masked: what is quoted is not found as it stands."""
        if isinstance(what, str):
            return compact_json(self._short(what))
        quoted = compact_json([self._mask(item) for item in what])
        if len(quoted) <= OUTPUT_CHARACTERS_MAX:
            return quoted
        return quoted[:OUTPUT_CHARACTERS_MAX] + ELLIPSIS

    def _short(self, text: str) -> str:
        if len(text) <= OUTPUT_CHARACTERS_MAX:
            return self._mask(text)
        return self._mask(text[:OUTPUT_CHARACTERS_MAX]) + ELLIPSIS


def _escape_invisible(quoted: str) -> str:
    """A JSON text whose strings have escapes for whatever ends a line or hides something."""
    if quoted.isprintable():
        return quoted
    return "".join(sign if sign.isprintable() else json.dumps(sign)[1:-1] for sign in quoted)
