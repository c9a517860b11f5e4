"""The output forms of answers."""

from enum import StrEnum


class Output(StrEnum):
    """Output form: a table or YAML for a person, JSON for a program."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    YAML = "yaml"
