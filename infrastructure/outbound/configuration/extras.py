"""What a configuration may need and what is only there where its extra was installed."""

from importlib.util import find_spec

MODEL_MISSING = (
    'needs what calls models, and that is not installed here: pip install "spawnlog[model]"'
)


def is_model_installed() -> bool:
    """Whether what calls models is there; looks for it without importing it."""
    return all(find_spec(name) is not None for name in ("pydantic_ai", "openai", "fastmcp"))
