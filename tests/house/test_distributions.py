"""The server and its client are two distributions of one version."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
SERVER = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
CLIENT = tomllib.loads((ROOT / "client" / "pyproject.toml").read_text("utf-8"))


def test_server_needs_the_client_of_its_version() -> None:
    version = CLIENT["project"]["version"]
    assert SERVER["project"]["version"] == version
    assert f"spawnlog-client=={version}" in SERVER["project"]["dependencies"]


def test_client_needs_pydantic_and_one_http_library() -> None:
    needed = {one.partition(">=")[0] for one in CLIENT["project"]["dependencies"]}
    assert needed == {"pydantic", "httpx2"}
    # Both distributions are installed into one environment.
    shared = set(CLIENT["project"]["dependencies"]) - set(SERVER["project"]["dependencies"])
    assert shared == set()
