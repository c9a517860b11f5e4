"""The fixed words of a prompt are joined and measured once for all children of one shape."""

import sys
from collections.abc import Callable
from types import FrameType

from domain.prompt.child_prompt import ChildFacts, ComposedPrompt, Surroundings, compose_prompt
from domain.prompt.pieces import Piece, TextPart, join_pieces, task_pieces
from domain.prompt.role import SpawnTools

TOOLS = SpawnTools(control=False)
"""No other test composes a prompt for this depth with these."""


def compose(label: str, surroundings: Surroundings | None = None) -> ComposedPrompt:
    child = ChildFacts(
        depth=3,
        max_spawn_depth=9,
        child_session_key=f"agent:main:subagent:{label}",
        label=label,
        tools=TOOLS,
    )
    return compose_prompt(child, task_pieces(f"Do {label}"), surroundings)


def words_called(action: Callable[[], object]) -> list[str]:
    """Return the functions of fixed words that an action calls."""
    called: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.endswith("domain/prompt/role.py"):
            called.append(code.co_name)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(before)
    return called


def test_fixed_words_are_made_once_for_a_shape() -> None:
    compose("first")
    assert words_called(lambda: compose("second")) == []


def test_children_of_one_shape_have_their_own_facts() -> None:
    for label in ("Ä", "b"):
        prompt = compose(label, Surroundings(preamble=f"Ö {label}"))
        whole = {"systemPrompt": prompt.system_prompt, "message": prompt.message}
        seen = {
            (part.of, part.source): whole[part.of].encode()[part.start : part.end].decode()
            for part in prompt.parts
        }
        assert seen["systemPrompt", "preamble"].endswith(f"Ö {label}")
        assert seen["systemPrompt", "role"].startswith("# Sub-agent")
        assert f"- Label: {label}" in seen["systemPrompt", "session"]
        assert seen["message", "task"] == f"Do {label}"


def test_parts_of_a_joined_text_move_behind_other_pieces() -> None:
    joined = join_pieces("message", [Piece("one", "é"), Piece("two", "b")])
    again = join_pieces("message", [Piece("zero", "ö"), joined, Piece("three", "c")])
    assert again.text == "öébc"
    assert again.parts == (
        TextPart("message", "zero", 0, 2),
        TextPart("message", "one", 2, 4),
        TextPart("message", "two", 4, 5),
        TextPart("message", "three", 5, 6),
    )
