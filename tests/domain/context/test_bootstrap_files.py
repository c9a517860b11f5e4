"""How much of a workspace's files a prompt holds."""

from domain.configuration.agents import BootstrapLimits
from domain.context.bootstrap_files import (
    BootstrapFile,
    BootstrapSelection,
    select_bootstrap_files,
    unreadable_warning,
)


def within(chars_max: int, total: int, *texts: str) -> BootstrapSelection:
    named = zip(("AGENTS.md", "TOOLS.md"), texts, strict=False)
    files = [BootstrapFile(name, text) for name, text in named]
    return select_bootstrap_files(files, BootstrapLimits(chars_max, total))


def texts_of(made: BootstrapSelection) -> list[str]:
    return [file.text for file in made.files]


def test_a_file_of_the_limit_is_whole() -> None:
    made = within(5, 100, "12345")
    assert (texts_of(made), made.warnings) == (["12345"], ())


def test_a_file_over_the_limit_is_cut_with_a_mark_and_a_warning() -> None:
    made = within(5, 100, "123456")
    assert texts_of(made) == ["12345\n\n[truncated: AGENTS.md exceeded 5 characters]"]
    assert made.warnings == (
        "AGENTS.md of the child's workspace was cut after 5 characters (bootstrapMaxChars)."
        " Shorten the file, or raise bootstrapMaxChars.",
    )


def test_a_cut_splits_nothing_seen_as_one_sign() -> None:
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    assert texts_of(within(4, 100, f"ab{family}cd"))[0].startswith("ab\n\n[truncated:")
    assert texts_of(within(2, 100, "xe\u0301y"))[0].startswith("x\n\n[truncated:")


def test_the_second_file_has_what_the_first_left_of_the_whole() -> None:
    made = within(10, 12, "1234567890", "abc")
    assert texts_of(made) == ["1234567890", "ab\n\n[truncated: TOOLS.md exceeded 2 characters]"]
    assert "(bootstrapTotalMaxChars)" in made.warnings[0]
    assert texts_of(within(10, 13, "1234567890", "abc")) == ["1234567890", "abc"]


def test_file_after_cut_one_has_what_is_left() -> None:
    made = within(10, 12, "1234567890+", "abc")
    assert texts_of(made)[1] == "ab\n\n[truncated: TOOLS.md exceeded 2 characters]"
    assert [one.split()[0] for one in made.warnings] == ["AGENTS.md", "TOOLS.md"]


def test_a_file_for_which_nothing_is_left_is_left_out_and_the_caller_is_told() -> None:
    made = within(10, 10, "1234567890", "abc")
    assert texts_of(made) == ["1234567890"]
    assert made.warnings == (
        "TOOLS.md of the child's workspace was left out: the file before it took all of the 10"
        " characters of bootstrapTotalMaxChars. Shorten that file, or raise"
        " bootstrapTotalMaxChars.",
    )


def test_a_blank_file_says_nothing_and_costs_nothing() -> None:
    made = within(5, 5, " \r\n\t\n" * 10, "abcde")
    assert ([file.name for file in made.files], made.warnings) == (["TOOLS.md"], ())


def test_an_unusable_file_is_told_of_with_what_to_do() -> None:
    assert unreadable_warning("TOOLS.md", "it is not UTF-8") == (
        "TOOLS.md of the child's workspace was left out: it is not UTF-8. Put a regular file of"
        " UTF-8 text in its place, or remove it."
    )
