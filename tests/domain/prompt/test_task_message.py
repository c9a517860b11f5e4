"""The task with what scripts put around it, and where each part stands."""

from hypothesis import given, settings
from hypothesis import strategies as st

from domain.prompt.pieces import Contribution, task_message
from domain.values.text import replace_unstorable

texts = st.text(alphabet=st.characters(), max_size=20)
contributions = st.lists(st.builds(Contribution, st.sampled_from("abc"), texts), max_size=3)


def test_scripts_stand_around_the_task_with_blank_lines_between() -> None:
    message = task_message("T", prepend=[Contribution("p", "P")], append=[Contribution("a", "Ä")])
    assert message.text == "P\n\nT\n\nÄ"
    assert [(part.source, part.start, part.end) for part in message.parts] == [
        ("script:p", 0, 1),
        ("separator", 1, 3),
        ("task", 3, 4),
        ("separator", 4, 6),
        ("script:a", 6, 8),
    ]


def test_a_task_alone_stands_alone() -> None:
    message = task_message("Review the architecture")
    assert message.text == "Review the architecture"
    assert [part.source for part in message.parts] == ["task"]


def test_several_scripts_keep_their_order() -> None:
    scripts = [Contribution("1", "one"), Contribution("2", ""), Contribution("3", "three")]
    assert task_message("T", prepend=scripts).text == "one\n\nthree\n\nT"


@settings(deadline=None)
@given(texts, contributions, contributions)
def test_the_parts_cover_every_byte_in_order(
    task: str, prepend: list[Contribution], append: list[Contribution]
) -> None:
    message = task_message(task, prepend=prepend, append=append)
    encoded = message.text.encode()
    at = 0
    for part in message.parts:
        assert (part.of, part.start) == ("message", at)
        assert part.end > part.start
        at = part.end
    assert at == len(encoded)
    tasks = [encoded[part.start : part.end] for part in message.parts if part.source == "task"]
    assert tasks == ([replace_unstorable(task).encode()] if task else [])
