"""Configuration vocabulary that also appears in recorded facts."""

from typing import Literal

EXTERNAL = "external"
"""Runtime type whose runs are executed outside this service, claimed over HTTP."""
SandboxMode = Literal["off", "non-main", "all"]
