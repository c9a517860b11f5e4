"""How a value looks in base64 and in a URL, once the text is folded. Pure."""

import base64
import json
from collections.abc import Iterable

from infrastructure.outbound.runtimes.folded_text import normalise_alphabet, remove_gaps

LINES_MAX = 20


"""The lines of a value that has no more are looked for by themselves, too."""


NESTED_MAX = 3


"""So many times JSON may stand in JSON: what a service answers is quoted by the log once more."""


FORM_CHARACTERS_MAX = 1024


"""What is longer is looked for piece by piece, so that no more than one waits to be told."""


def written_forms(text: str) -> Iterable[str]:
    """A text as it stands, and as JSON writes it: also JSON that stands in JSON as a text, and with
    the escaped slashes that some write. Few texts have more than one form."""
    forms = [text]
    for is_ascii in (True, False):
        for slash in ("/", "\\/"):
            form = text
            for _ in range(NESTED_MAX):
                form = json.dumps(form, ensure_ascii=is_ascii)[1:-1].replace("/", slash)
                forms.append(form)
    return tuple(dict.fromkeys(forms))


def encoded_forms(value: str, characters_min: int) -> Iterable[str]:
    """What stands in a folded text that holds the value, or JSON of it, in an encoding, so far as
    it is long enough. Blanks around the value are none of its own."""
    lines = value.strip().splitlines()
    parts = {value.strip(), *(line.strip() for line in lines if len(lines) <= LINES_MAX)}
    for part in {form for one in parts for form in written_forms(one)}:
        if len(part) < characters_min:
            continue
        content = _bytes_of(part)
        for whole in (*_url_forms(content), *_base64_forms(content)):
            yield from _segments(whole, characters_min)


def _bytes_of(text: str) -> bytes:
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return text.encode(errors="replace")


def _url_forms(content: bytes) -> tuple[str, ...]:
    """Each byte as a sign, for a URL encodes bytes; a form writes blanks in its own way."""
    text = normalise_alphabet(remove_gaps(content.decode("latin-1")))
    return text, text.replace(" ", "+")


def _base64_forms(content: bytes) -> Iterable[str]:
    """The signs that are made of nothing but the value, for each number of bytes that may stand
    before it in its first group of three. At the end of all that was encoded there are more."""
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + content).decode()
        bits = 8 * (before + len(content))
        first, behind = (0, 2, 3)[before], bits // 6
        signs = encoded.rstrip("=")
        yield encoded[first:behind]
        if len(signs) > behind:
            yield signs[first:]
            yield encoded[first:]


def _segments(form: str, characters_min: int) -> Iterable[str]:
    """One behind the other; the last is as long as the others."""
    if len(form) <= FORM_CHARACTERS_MAX:
        yield from [form] if len(form) >= characters_min else []
        return
    for at in range(0, len(form) - FORM_CHARACTERS_MAX, FORM_CHARACTERS_MAX):
        yield form[at : at + FORM_CHARACTERS_MAX]
    yield form[-FORM_CHARACTERS_MAX:]
