"""Roles of a session, and whom it may control."""

from typing import Literal

Role = Literal["main", "orchestrator", "leaf"]
ControlScope = Literal["children", "none"]
