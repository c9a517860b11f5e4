"""Sources that a value can come from."""

from typing import Literal

DepthSource = Literal["record", "chain", "shape"]
ConfiguredAt = Literal["agent", "defaults"]
