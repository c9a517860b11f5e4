"""Paths of the HTTP API."""

from urllib.parse import quote

from infrastructure.inbound.command_line.display.failures import CommandFailed


def path_of(*segments: str) -> str:
    """A path under `/v1`, each segment quoted whole.

    Raises CommandFailed for a segment that is empty or that a path would swallow.
    """
    for segment in segments:
        if segment in ("", ".", ".."):
            raise CommandFailed(f'"{segment}" is not a name that the server could know')
    quoted = (quote(segment, safe="", errors="replace") for segment in segments)
    return "/v1/" + "/".join(quoted)
