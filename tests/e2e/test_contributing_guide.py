"""The end-to-end test in CONTRIBUTING.md is one."""

import re
from typing import Any

import pytest

from tests.support.servers.databases import Databases
from tests.support.servers.preloaded import ROOT

pytestmark = [pytest.mark.kill, pytest.mark.nightly]


def test_example_of_the_guide_passes(databases: Databases) -> None:
    guide = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```$", guide, re.M | re.S)
    module: dict[str, Any] = {}
    exec(code, module)
    (test,) = [value for name, value in module.items() if name.startswith("test_")]
    test(databases)
