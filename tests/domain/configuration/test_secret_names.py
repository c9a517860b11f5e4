from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from domain.configuration.configuration import Configuration
from domain.configuration.secrets import is_secret_name


def plain_fields(section: type[BaseModel]) -> Iterator[str]:
    for name, field in section.model_fields.items():
        yield field.alias or name


def test_no_field_of_ours_that_holds_plain_text_is_taken_for_a_secret() -> None:
    sections: set[type[BaseModel]] = set()

    def collect(annotation: Any) -> None:
        for inner in getattr(annotation, "__args__", ()):
            collect(inner)
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            if annotation in sections:
                return
            sections.add(annotation)
            for field in annotation.model_fields.values():
                collect(field.annotation)

    collect(Configuration)
    taken = {name for section in sections for name in plain_fields(section) if is_secret_name(name)}
    # The others are numbers, and the list of tokens, which is judged field by field.
    really = {"apiKey", "databaseUrl", "token", "secret", "secrets", "$secret"}
    assert taken == {
        "inputTokens",
        "outputTokens",
        "cacheReadTokens",
        "cacheWriteTokens",
        "tokens",
        *really,
    }
