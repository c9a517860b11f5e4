"""Where a value was found."""

from typing import Literal

DepthSource = Literal["record", "chain", "shape"]
ConfiguredAt = Literal["agent", "defaults"]
