"""What no program can be given as a value, wherever it comes from. Pure."""

VALUE_BYTES_MAX = 32 * 1024
VALUE_LINES_MAX = 200


def value_fault(text: str, *, is_whole: bool = True) -> str | None:
    """Why a text can be no value, in words that follow the name of its profile; None when it can.
    A part of one, which other parts are put into, may be blank."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        return "has a value that is not UTF-8"
    if (is_whole and not text.strip()) or "\0" in text:
        return "has a value that is blank or contains NUL"
    if size > VALUE_BYTES_MAX or len(text.splitlines()) > VALUE_LINES_MAX:
        limits = f"{VALUE_BYTES_MAX} bytes or {VALUE_LINES_MAX} lines"
        return f"has a value of more than {limits}"
    return None
