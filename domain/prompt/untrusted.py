"""What a child said, set apart wherever it enters a prompt: it is data, it gives no orders."""

from domain.disguised_marks import disguised_marks
from domain.values.text import replace_unstorable, utf8_prefix

RESULT_BYTES_MAX = 102_400
BEGIN = "<<<BEGIN_UNTRUSTED_CHILD_RESULT>>>"
END = "<<<END_UNTRUSTED_CHILD_RESULT>>>"


def freeze_result(text: str) -> str:
    """The result as it is kept: trimmed, at most 102 400 bytes, with a notice when it was cut."""
    return cut_to_bytes(text, RESULT_BYTES_MAX, "frozen completion output exceeded 100KB")


def cut_to_bytes(text: str, bytes_max: int, why: str) -> str:
    """The trimmed text in `bytes_max` bytes, the notice `[truncated: <why> (<n>KB)]` included."""
    plain = replace_unstorable(text.strip())
    size = len(plain.encode())
    if size <= bytes_max:
        return plain
    notice = f"\n\n[truncated: {why} ({(size + 512) // 1024}KB)]"
    return utf8_prefix(plain, bytes_max - len(notice.encode())) + notice


def without_delimiters(text: str) -> str:
    """The text with every delimiter in it, however disguised, made harmless."""
    kept: list[str] = []
    at = 0
    for mark in disguised_marks(text):
        word = "BEGIN" if mark.begins else "END"
        kept += [text[at : mark.start], f"[[{word}_UNTRUSTED_CHILD_RESULT]]"]
        at = mark.end
    return "".join([*kept, text[at:]])


def delimit_result(text: str) -> str:
    """The text between delimiters that nothing in it can close."""
    return f"{BEGIN}\n{without_delimiters(replace_unstorable(text))}\n{END}"
