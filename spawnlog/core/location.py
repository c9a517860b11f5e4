"""Where the server is, and the token that opens it.

The address: `--url`, else SPAWNLOG_URL, else what the running server wrote into its data
directory, else the default port of this machine. The token: SPAWNLOG_TOKEN, else the token file
of the data directory. The file's token goes to the server of that directory and to this machine
alone: a mistyped address must not collect it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from infrastructure.contract.data_directory import (
    ADMIN_TOKEN_FILE,
    SERVER_FILE,
    default_data_directory,
)
from spawnlog.core.errors import InvalidSetting

DEFAULT_URL = "http://127.0.0.1:8700"
_FILE_BYTES_MAX = 65_536


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """A server to speak to. `url` has no slash at its end; without a `token` none is sent."""

    url: str
    token: str | None = field(default=None, repr=False)

    @property
    def is_on_this_machine(self) -> bool:
        """Whether the address is a loopback one."""
        host = urlsplit(self.url).hostname or ""
        if host == "localhost":
            return True
        try:
            return ip_address(host).is_loopback
        except ValueError:
            return False


def locate_server(
    url: str | None,
    data_dir: Path | None,
    variables: Mapping[str, str],
    *,
    token: str | None = None,
) -> ServerAddress:
    """The server for these flags (None: not given) and this environment.

    Raises InvalidSetting when an address, a token or a file cannot be one.
    """
    directory = data_directory(data_dir, variables)
    recorded = _read_recorded_url(directory / SERVER_FILE)
    given = url or variables.get("SPAWNLOG_URL", "").strip()
    bare = ServerAddress(_validate_url(given or recorded or DEFAULT_URL))
    if token is not None:
        return ServerAddress(bare.url, validate_token(token.strip(), "the argument `token`"))
    if token := variables.get("SPAWNLOG_TOKEN", "").strip():
        return ServerAddress(bare.url, validate_token(token, "SPAWNLOG_TOKEN"))
    if not (bare.url == recorded or bare.is_on_this_machine):
        return bare
    file = directory / ADMIN_TOKEN_FILE
    text = _read_small_file(file).strip()
    return ServerAddress(bare.url, validate_token(text, str(file))) if text else bare


def data_directory(data_dir: Path | None, variables: Mapping[str, str]) -> Path:
    """The data directory: the flag, else SPAWNLOG_DATA_DIR, else this user's."""
    if data_dir is not None:
        return data_dir.expanduser()
    if text := variables.get("SPAWNLOG_DATA_DIR", "").strip():
        return Path(text).expanduser()
    return default_data_directory()


def _read_recorded_url(file: Path) -> str | None:
    text = _read_small_file(file)
    if not text:
        return None
    try:
        return _validate_url(str(json.loads(text)["url"]))
    except (ValueError, LookupError, TypeError):
        raise InvalidSetting(
            f'{file} is not the note of a server ({{"url": …}}): give --url, or remove the file'
        ) from None


def _read_small_file(file: Path) -> str:
    """The text of a small file; empty when it is not there or is another user's."""
    try:
        with file.open("rb") as opened:
            content = opened.read(_FILE_BYTES_MAX + 1)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return ""
    except OSError as error:
        raise InvalidSetting(f"cannot read {file}: {error.strerror}") from None
    try:
        return content.decode("utf-8") if len(content) <= _FILE_BYTES_MAX else ""
    except UnicodeDecodeError:
        raise InvalidSetting(f"{file} is not text: remove it and start the server again") from None


def _validate_url(text: str) -> str:
    advice = "give an address such as http://127.0.0.1:8700, without user, path or query"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise InvalidSetting(f"not an address of a server; {advice}") from None
    plain = parts.scheme in ("http", "https") and parts.hostname and port != 0
    if not plain or parts.username is not None or parts.query or parts.fragment:
        raise InvalidSetting(f"not an address of a server; {advice}")
    if parts.path not in ("", "/") or any(
        sign.isspace() or not sign.isprintable() or sign in "?#\\" for sign in text
    ):
        raise InvalidSetting(f"not an address of a server; {advice}")
    if not text.isascii() or not all(0 < len(one) < 64 for one in _labels(parts.hostname or "")):
        raise InvalidSetting(f"not the name of a host, which is ASCII (xn--…); {advice}")
    return text.removesuffix("/")


def _labels(host: str) -> list[str]:
    """The parts of a name; an address of IPv6 is one."""
    return [host] if ":" in host else host.removesuffix(".").split(".")


def validate_token(token: str, source: str) -> str:
    """The token. InvalidSetting, without it, when it cannot be one."""
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise InvalidSetting(f"{source} does not hold a token: it must be one word of ASCII signs")
    return token
