"""The end-to-end tests in CONTRIBUTING.md are some."""

import re
from typing import Any

import pytest

from tests.support.servers.databases import Databases
from tests.support.servers.preloaded import ROOT
from tests.support.servers.server import Server

pytestmark = [pytest.mark.kill, pytest.mark.nightly]


def test_examples_of_guide_pass(server: Server, databases: Databases) -> None:
    guide = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    module: dict[str, Any] = {}
    for code in re.findall(r"^```python\n(.*?)^```$", guide, re.M | re.S):
        exec(code, module)
    warm, killed = (value for name, value in module.items() if name.startswith("test_"))
    warm(server)
    killed(databases)
