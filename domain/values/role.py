"""What a session may do to others."""

from typing import Literal

Role = Literal["main", "orchestrator", "leaf"]
ControlScope = Literal["children", "none"]
