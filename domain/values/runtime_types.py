"""Words of a configuration that the record has too, where no configuration is read."""

from typing import Literal

EXTERNAL = "external"
"""The type of a runtime outside of this service, which claims its runs over HTTP."""
SandboxMode = Literal["off", "non-main", "all"]
