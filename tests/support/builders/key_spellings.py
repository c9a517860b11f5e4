"""One session key in many spellings."""

import unicodedata

from hypothesis import strategies as st

_SEPARATORS = (":", "::", ": :", " : ", ":  ::")
_BEFORE = ("", ":", " ", "\t:")
_BEHIND = ("", ":", " ", "::", "\n")
_BLANKS = ("", " ")


def spellings(name: str) -> list[str]:
    """Return spellings of the key `agent:main:<name>`, as its owner, a script or an attacker may
    write it.
    """
    return [
        f"agent:main:{name}",
        name,
        f"Agent:MAIN:{name.upper()}",
        f"  agent::main : {name} ",
        f":agent:main:{name}:",
        name.title(),
    ]


@st.composite
def spelled(draw: st.DrawFn, *parts: str) -> str:
    """Return these parts in any case and normal form, with blanks and empty parts in between."""
    written = draw(st.sampled_from(_BEFORE))
    for place, part in enumerate(parts):
        written += draw(st.sampled_from(_SEPARATORS)) if place else ""
        written += draw(st.sampled_from(_BLANKS)) + draw(_cased(part))
        written += draw(st.sampled_from(_BLANKS))
    return written + draw(st.sampled_from(_BEHIND))


@st.composite
def _cased(draw: st.DrawFn, text: str) -> str:
    upper = draw(st.lists(st.booleans(), min_size=len(text), max_size=len(text)))
    written = "".join(
        sign.upper() if is_upper else sign for sign, is_upper in zip(text, upper, strict=True)
    )
    return unicodedata.normalize(draw(st.sampled_from(("NFC", "NFD"))), written)
