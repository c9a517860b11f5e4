"""The document is made of the rows of the operations, and of their examples."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

import application
from application.operations import MODULES
from application.operations import OPERATIONS as WITHOUT_HTTP
from infrastructure.inbound.http.openapi import document, documented_route
from infrastructure.inbound.http.operations import OPERATIONS
from infrastructure.inbound.http.responses.examples import EXAMPLES, example_of


def test_paths_have_the_order_of_the_table() -> None:
    assert list(document()["paths"]) == list(dict.fromkeys(row.path for row in OPERATIONS))
    assert [row for row in OPERATIONS if row in WITHOUT_HTTP] == list(WITHOUT_HTTP)


def test_every_module_with_an_operation_is_in_the_table() -> None:
    modules = Path(application.__path__[0]).rglob("*.py")
    written = {
        str(one) for one in modules if re.search(r"^@operation\(", one.read_text("utf-8"), re.M)
    }
    missing = written - {str(one.__file__) for one in MODULES}
    assert not missing, "add to MODULES of application/operations.py"


def test_tags_are_listed_and_their_operations_stand_together() -> None:
    tags = [row.tag for row in OPERATIONS]
    assert [one["name"] for one in document()["tags"]] == list(dict.fromkeys(tags))
    assert tags == sorted(tags, key=tags.index)


def test_every_example_is_of_an_operation() -> None:
    assert set(EXAMPLES) == {row.name for row in OPERATIONS}


@pytest.mark.parametrize("kind", ["request", "response"])
def test_missing_example_is_told_with_operation_and_file(kind: str) -> None:
    with pytest.raises(LookupError, match=rf"^newOne has no example: .*{kind}.*examples\.json"):
        example_of("newOne", kind)


def test_missing_example_of_a_stream_is_told() -> None:
    row = next(row for row in OPERATIONS if row.streams)
    with pytest.raises(LookupError, match="newOne has no example"):
        documented_route(replace(row, name="newOne"))
