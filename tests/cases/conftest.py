"""The server for cases ends with the tests."""

from collections.abc import Iterator

import pytest

from tests.support.cases import served


@pytest.fixture(scope="package", autouse=True)
def _case_server() -> Iterator[None]:
    yield
    served.close()
