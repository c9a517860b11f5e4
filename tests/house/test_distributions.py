"""Server and client are two distributions of one version, and declare their imports."""

import importlib.metadata
import re
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
    needed = {dependency.partition(">=")[0] for dependency in CLIENT["project"]["dependencies"]}
    assert needed == {"pydantic", "httpx2"}
    # Both distributions are installed into one environment.
    shared = set(CLIENT["project"]["dependencies"]) - set(SERVER["project"]["dependencies"])
    assert shared == set()


COMES_WITH = {
    "openai": "pydantic-ai-slim",
    "mcp-types": "mcp",
    "psycopg-pool": "psycopg",
    "pydantic-core": "pydantic",
}
"""Distributions that are an extra of another one, or pinned to its version."""


def test_every_imported_distribution_is_declared() -> None:
    project = SERVER["project"]
    options = project["optional-dependencies"]
    requirements = [*project["dependencies"], *options["model"], *options["otel"]]
    declared = {re.match(r"[\w-]+", requirement)[0] for requirement in requirements} | {"spawnlog"}  # type: ignore[index]
    distributions = importlib.metadata.packages_distributions()
    imported = {
        name
        for floor in ("domain", "application", "infrastructure")
        for path in (ROOT / floor).rglob("*.py")
        for name in re.findall(r"^\s*(?:from|import) (\w+)", path.read_text("utf-8"), re.MULTILINE)
    }
    for name in imported & set(distributions):
        of = {distribution.lower().replace("_", "-") for distribution in distributions[name]}
        assert declared & {COMES_WITH.get(item, item) for item in of}, name
