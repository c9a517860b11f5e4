"""Roles and control scopes of sessions."""

from typing import Literal

Role = Literal["main", "orchestrator", "leaf"]
ControlScope = Literal["children", "none"]
