"""Configurations from a text or from values, when a test has no file."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from domain.configuration.problems import ConfigurationError, ConfigurationProblem
from infrastructure.outbound.configuration.load import (
    LoadedConfiguration,
    load_document,
    read_text,
)


def load_text(
    text: str, source: str, folder: Path | None = None, *, references_allowed: bool = False
) -> LoadedConfiguration:
    """The configuration that a JSON5 text holds, as if read from a file."""
    return load_document(
        read_text(text, source),
        source,
        folder or Path.cwd(),
        references_allowed=references_allowed,
    )


def load_values(
    values: object, source: str = "config", folder: Path | None = None
) -> LoadedConfiguration:
    """The configuration that JSON values make, which may have been taken from a kept revision and
    changed; its problems have no lines."""
    text = json.dumps(values, ensure_ascii=False)
    try:
        loaded = load_text(text, source, folder, references_allowed=True)
    except ConfigurationError as failure:
        raise ConfigurationError(_without_lines(failure.problems)) from None
    return replace(loaded, warnings=tuple(_without_lines(loaded.warnings)))


def _without_lines(problems: Iterable[ConfigurationProblem]) -> Iterator[ConfigurationProblem]:
    return (replace(problem, line=None, column=None) for problem in problems)
