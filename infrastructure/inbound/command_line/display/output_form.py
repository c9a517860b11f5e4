"""The forms of an answer."""

from enum import StrEnum


class Output(StrEnum):
    """How an answer is printed: a table or YAML for a person, or JSON for a program."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    YAML = "yaml"
