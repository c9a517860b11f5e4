"""What is shown of a text from outside."""

from domain.values import text


def test_every_sign_that_is_printable_is_shown_as_it_is() -> None:
    printable = (sign for sign in map(chr, range(0x110000)) if sign.isprintable())
    changed = [sign for sign in printable if text._printable_sign(sign) != sign]
    assert changed == []
