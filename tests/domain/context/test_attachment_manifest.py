"""What is written down of attached files."""

import json
from uuid import UUID

import pytest

from domain.context.attachment_manifest import (
    FilesMismatch,
    file_list,
    manifest_text,
    parse_file_list,
    relative_dir,
    render_file_list,
    restore_files,
)
from domain.context.attachments import AcceptedFiles, accept_file

RUN = UUID("6f0c1c1e-3d0e-4c52-9d4e-0f6a4d4b7c11")
FOLDER = ".openclaw/attachments/6f0c1c1e-3d0e-4c52-9d4e-0f6a4d4b7c11"
FILES = AcceptedFiles((accept_file("é.txt", b"abc", "text/plain"), accept_file('"', b"")))
ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_a_run_has_a_folder_of_its_own() -> None:
    assert relative_dir(RUN) == FOLDER


def test_the_manifest_is_json_of_two_spaces_and_a_line_end() -> None:
    assert manifest_text(FOLDER, FILES.files) == (
        "{\n"
        f'  "relDir": "{FOLDER}",\n'
        '  "count": 2,\n'
        '  "totalBytes": 3,\n'
        '  "files": [\n'
        "    {\n"
        '      "name": "é.txt",\n'
        '      "bytes": 3,\n'
        f'      "sha256": "{ABC}"\n'
        "    },\n"
        "    {\n"
        '      "name": "\\"",\n'
        '      "bytes": 0,\n'
        f'      "sha256": "{EMPTY}"\n'
        "    }\n"
        "  ]\n"
        "}\n"
    )


def test_the_list_is_kept_and_read_again_without_a_content() -> None:
    text = render_file_list(file_list(FILES))
    assert json.loads(text) == {
        "files": [
            {"name": "é.txt", "bytes": 3, "sha256": ABC, "mimeType": "text/plain"},
            {"name": '"', "bytes": 0, "sha256": EMPTY},
        ]
    }
    assert parse_file_list(text) == file_list(FILES)
    assert restore_files(parse_file_list(text), [b"abc", b""]) == FILES


@pytest.mark.parametrize("bodies", [[], [b"abc"], [b"abd", b""], [b"", b"abc"], [b"abc", b"", b""]])
def test_other_bytes_than_those_judged_are_not_the_files(bodies: list[bytes]) -> None:
    with pytest.raises(FilesMismatch):
        restore_files(file_list(FILES), bodies)


@pytest.mark.parametrize("text", ["", "[]", '{"files": [{}]}', '{"files": [], "more": 1}'])
def test_a_text_that_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(FilesMismatch, match="cannot be read"):
        parse_file_list(text)
