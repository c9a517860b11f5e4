"""Find the server and its token.

Address, in this order: `--url`, SPAWNLOG_URL, the most recently started server on the data
directory, the default port of this machine. Token: SPAWNLOG_TOKEN, else the token file of the data
directory. The token of the file is sent only to servers of that directory and to this machine, so
that a mistyped address does not receive it.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from spawnlog.core.data_directory import (
    ADMIN_TOKEN_FILE,
    ServerEntry,
    default_data_directory,
    server_entries,
)
from spawnlog.core.errors import InvalidSettingError

DEFAULT_URL = "http://127.0.0.1:8700"
_FILE_BYTES_MAX = 65_536
ENDED_SHOWN_MAX = 3


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Address and token of a server.

    Attributes:
        url: Address without a trailing slash.
        token: Token to send, or None.
        origin: Why this address was chosen, for the error that no server answers there.
        settings: Settings that choose another address, for the same error.
    """

    url: str
    token: str | None = field(default=None, repr=False)
    origin: str = field(default="", repr=False, compare=False)
    settings: str = field(
        default="url or SPAWNLOG_URL, data_dir or SPAWNLOG_DATA_DIR", repr=False, compare=False
    )

    @property
    def is_on_this_machine(self) -> bool:
        """True if the host is `localhost` or a loopback address."""
        host = urlsplit(self.url).hostname or ""
        if host == "localhost":
            return True
        try:
            return ip_address(host).is_loopback
        except ValueError:
            return False


def locate_server(
    url: str | None,
    data_dir: str | Path | None,
    variables: Mapping[str, str],
    *,
    token: str | None = None,
) -> ServerAddress:
    """Return the address and token for these arguments and this environment.

    Args:
        url: Address, or None.
        data_dir: Data directory, or None.
        variables: Environment variables.
        token: Token, or None. Replaces those of the environment and of the data directory.

    Raises:
        InvalidSettingError: The address, the token or a file is invalid.
    """
    directory = data_directory(data_dir, variables)
    entries = server_entries(directory)
    alive = _servers_by_url(entry for entry in entries if entry.is_alive)
    if given := url or variables.get("SPAWNLOG_URL", "").strip():
        bare = ServerAddress(_validate_url(given))
    elif alive:
        first = next(iter(alive))
        bare = ServerAddress(first, origin=f"the address in {alive[first].path}")
    else:
        ended = [entry for entry in entries if not entry.is_alive]
        bare = ServerAddress(DEFAULT_URL, origin=_describe_default(directory, ended))
    if token is not None:
        return replace(bare, token=validate_token(token.strip(), "the argument `token`"))
    if token := variables.get("SPAWNLOG_TOKEN", "").strip():
        return replace(bare, token=validate_token(token, "SPAWNLOG_TOKEN"))
    if not (bare.url in alive or bare.is_on_this_machine):
        return bare
    file = directory / ADMIN_TOKEN_FILE
    text = _read_small_file(file).strip()
    return replace(bare, token=validate_token(text, str(file))) if text else bare


def _servers_by_url(entries: Iterable[ServerEntry]) -> dict[str, ServerEntry]:
    """Return the entries by address; skip those whose address is invalid."""
    found: dict[str, ServerEntry] = {}
    for entry in entries:
        with suppress(InvalidSettingError):
            found[_validate_url(entry.url)] = entry
    return found


def _describe_default(directory: Path, killed: list[ServerEntry]) -> str:
    """Return why the default address is used, with the killed servers of the data directory."""
    if not killed:
        return f"the default address; no server runs on the data directory {directory}"
    ended = ", ".join(f"{entry.url} (process {entry.pid})" for entry in killed[:ENDED_SHOWN_MAX])
    return (
        f"the default address; the servers of the data directory {directory} were killed: {ended}"
    )


def data_directory(data_dir: str | Path | None, variables: Mapping[str, str]) -> Path:
    """Return the data directory: the argument, else SPAWNLOG_DATA_DIR, else that of this user.

    Raises:
        InvalidSettingError: The path begins with the name of an unknown user.
    """
    given = data_dir if data_dir is not None else variables.get("SPAWNLOG_DATA_DIR", "").strip()
    if not given:
        return default_data_directory()
    try:
        return Path(given).expanduser()
    except RuntimeError as error:
        raise InvalidSettingError(f"the data directory {given} names an unknown user") from error


def _read_small_file(file: Path) -> str:
    """Return the text of a small file; empty if it is missing, too large or not permitted."""
    try:
        with file.open("rb") as opened:
            content = opened.read(_FILE_BYTES_MAX + 1)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return ""
    except OSError as error:
        raise InvalidSettingError(f"cannot read {file}: {error.strerror}") from None
    try:
        return content.decode("utf-8") if len(content) <= _FILE_BYTES_MAX else ""
    except UnicodeDecodeError:
        raise InvalidSettingError(
            f"{file} is not text: remove it and start the server again"
        ) from None


def _validate_url(text: str) -> str:
    advice = "give an address such as http://127.0.0.1:8700, without user, path or query"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise InvalidSettingError(f"not an address of a server; {advice}") from None
    plain = parts.scheme in ("http", "https") and parts.hostname and port != 0
    if not plain or parts.username is not None or parts.query or parts.fragment:
        raise InvalidSettingError(f"not an address of a server; {advice}")
    if parts.path not in ("", "/") or any(
        sign.isspace() or not sign.isprintable() or sign in "?#\\" for sign in text
    ):
        raise InvalidSettingError(f"not an address of a server; {advice}")
    if not text.isascii() or not all(
        0 < len(label) < 64 for label in _labels(parts.hostname or "")
    ):
        raise InvalidSettingError(f"not the name of a host, which is ASCII (xn--…); {advice}")
    return text.removesuffix("/")


def _labels(host: str) -> list[str]:
    """Return the labels of a host name; an IPv6 address is one label."""
    return [host] if ":" in host else host.removesuffix(".").split(".")


def validate_token(token: str, source: str) -> str:
    """Return the token, or raise InvalidSetting if it is invalid. The error does not quote the
    token."""
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise InvalidSettingError(
            f"{source} does not hold a token: it must be one word of ASCII characters"
        )
    return token
