"""Files of earlier releases are read for ever, and are written again as they were."""

from pathlib import Path

import pytest

from infrastructure.outbound.log.transfer.text_lines import FILE_FORMAT
from infrastructure.outbound.log.transfer.verify_file import verify_file
from tests.support.builders.exported_logs import WHOLE, exported, imported

GOLDEN = Path(__file__).parents[4] / "golden_exports"
FILES = sorted(GOLDEN.glob("format-*.ndjson"))


def test_there_is_one_of_each_format() -> None:
    assert [file.stem for file in FILES] == [f"format-{n}" for n in range(1, FILE_FORMAT + 1)]


@pytest.mark.server
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_of_an_earlier_format_is_verified_and_imported(
    file: Path, database_url: str, tmp_path: Path
) -> None:
    found = verify_file(file)
    assert (found.fault, found.events, found.erased) == (None, 100, 0)
    assert found.contents > 10
    assert found.transcripts > 1
    imported(database_url, file)
    exported(database_url, tmp_path / "again.ndjson", **WHOLE)
    if file.stem == f"format-{FILE_FORMAT}":
        assert (tmp_path / "again.ndjson").read_bytes() == file.read_bytes()
