"""What was typed for a server: the flags of `serve`, `migrate` and `log rebuild`."""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """The flags, None where none was given: then a variable, the file or the default speaks.

    `config` is the configuration file, None for the built-in one; `port` 0 picks a free port. A
    database URL may hold a password, so it is kept out of what is printed of this.
    """

    config: Path | None = None
    database_url: str | None = field(default=None, repr=False)
    data_dir: Path | None = None
    host: str | None = None
    port: int | None = None
    no_auth: bool | None = None
