import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infrastructure.outbound.configuration.json5 import Document, Json5Error, read_json5


def value_of(text: str) -> Any:
    return read_json5(text).values


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'"\\u0041"', r"\u0041"),
        (r'"D:\\x86\\new"', r"D:\x86\new"),
        (r'"\ud83d\ude00"', "\U0001f600"),
        (r"'it\'s \x41\u00e9\v\a'", "it's A\u00e9\va"),
        ("'two \\\nlines \\\r\nand\\\u2028 three'", "two lines and three"),
        ('"a\u2028b\tc"', "a\u2028b\tc"),
        ("'\"'", '"'),
        ("{e2e: 1, E5: 2, true: 3}", {"e2e": 1, "E5": 2, "true": 3}),
        ("{null: 4, NaN: 5}", {"null": 4, "NaN": 5}),
        (r"{$a: 1, _b: 2, \u0061b: 3}", {"$a": 1, "_b": 2, "ab": 3}),
        ("{ünï: 4, undefined: 5}", {"ünï": 4, "undefined": 5}),
        ("[1, 2,]", [1, 2]),
        ("{a: 1,}", {"a": 1}),
        ("[]", []),
        ("{}", {}),
        ("[0x1F, -0xff, +5, .5, 5., 1e3, -1.5e-1, -0]", [31, -255, 5, 0.5, 5, 1000, -0.15, 0]),
        ("[8.0, 1e2]", [8, 100]),
        ("// one\n1 // two", 1),
        ("/* one * / */ [/**/1/*,2*/,/**/3/**/]", [1, 3]),
        ("\ufeff{a:1}\r\n", {"a": 1}),
        ("\u3000\v\f true", True),
        ("[null,false]", [None, False]),
    ],
)  # fmt: skip
def test_json5_means_what_it_says(text: str, value: object) -> None:
    assert value_of(text) == value


def test_whole_numbers_are_whole_however_they_are_written() -> None:
    assert [type(number) for number in value_of("[8.0, 8, 8.5, 1e3]")] == [int, int, float, int]


def test_numbers_beyond_64_bits_are_read_as_scripts_read_them() -> None:
    assert value_of("[9223372036854775807, 9223372036854775808]") == [2**63 - 1, float(2**63)]
    assert value_of("1" + "0" * 300) == 1e300


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("", 1, 1),
        ("  // only this", 1, 15),
        ("{a: 1} 2", 1, 8),
        ("{\n  a 1\n}", 2, 5),
        ("{\n  a: 1\n  b: 2\n}", 3, 3),
        ("{a: }", 1, 5),
        ("[1,,2]", 1, 4),
        ("[,]", 1, 2),
        ("{,}", 1, 2),
        ("{1: 2}", 1, 2),
        ("{a-b: 2}", 1, 2),
        ("[1\n", 1, 1),
        ("{a: [1, 2}", 1, 10),
        ("{a: {b: 1}", 1, 1),
        ("[01]", 1, 2),
        ("[1_0]", 1, 2),
        ("[- 5]", 1, 2),
        ("[--5]", 1, 2),
        ("[\u0663]", 1, 2),
        ("[0x]", 1, 2),
        ("[NaN]", 1, 2),
        ("[-Infinity]", 1, 2),
        ("[1e999]", 1, 2),
        ("{a: undefined}", 1, 5),
        ("{a: yes}", 1, 5),
        ("'abc", 1, 1),
        ("\r\n\r'a\nb'", 3, 1),
        (r"'\x4'", 1, 2),
        (r"'\u12'", 1, 2),
        (r"'\1'", 1, 2),
        (r"'\01'", 1, 2),
        (r"['\ud800']", 1, 2),
        (r"['\ude00\ud83d']", 1, 2),
        (r"['\0']", 1, 2),
        ("1 /* open", 1, 3),
        ("/", 1, 1),
        ("{a: 1; b: 2}", 1, 5),
    ],
)
def test_a_mistake_is_reported_where_it_stands(text: str, line: int, column: int) -> None:
    with pytest.raises(Json5Error) as caught:
        read_json5(text)

    place = Document(None, {}, (), text).line_and_column(caught.value.offset)
    assert place == (line, column), caught.value.message


def test_depth_is_limited_to_a_hundred() -> None:
    value_of("[" * 100 + "]" * 100)
    for depth in (101, 100_000):
        with pytest.raises(Json5Error, match="deeper than 100"):
            read_json5("[" * depth + "]" * depth)
        with pytest.raises(Json5Error, match="deeper than 100"):
            read_json5("{a:" * depth)


def test_text_of_mistakes_is_read_once() -> None:
    count = 100_000
    document = read_json5("{" + "a: 1,\n" * count + "}")
    places = [document.line_and_column(offset) for _, offset in document.repeated]
    assert places == [(line, 1) for line in range(2, count + 1)]


def test_lines_end_in_three_ways() -> None:
    document = read_json5("[\r\n1,\r2,\n3]")
    places = [document.line_and_column(place.value) for place in document.places.values()]
    assert places == [(1, 1), (2, 1), (3, 1), (4, 1)]


def test_each_value_and_key_has_its_place() -> None:
    document = read_json5('{\n  a: [\n    1, {"b/c~d": 2}\n  ]\n}')

    places = {
        pointer: (document.line_and_column(place.value), document.line_and_column(place.key))
        for pointer, place in document.places.items()
    }
    assert places == {
        "": ((1, 1), (1, 1)),
        "/a": ((2, 6), (2, 3)),
        "/a/0": ((3, 5), (3, 5)),
        "/a/1": ((3, 8), (3, 8)),
        "/a/1/b~1c~0d": ((3, 18), (3, 9)),
    }


def test_repeated_key_is_noted_each_time() -> None:
    document = read_json5("{a: 1, 'a': 2, b: {a: 3, \\u0061: 4}}")

    assert [pointer for pointer, _ in document.repeated] == ["/a", "/b/a"]


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | texts
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=15,
)  # fmt: skip


@given(json_values, st.booleans(), st.sampled_from([None, 2]))
def test_json_is_read_as_json(value: object, escaped: bool, indent: int | None) -> None:
    assert value_of(json.dumps(value, ensure_ascii=escaped, indent=indent)) == value


@given(st.text(st.sampled_from("{}[],:\"'\\/*\n u0041axe+-.1"), max_size=30))
def test_any_text_is_document_or_mistake(text: str) -> None:
    offset = 0
    try:
        read_json5(text)
    except Json5Error as failure:
        offset = failure.offset
    assert 0 <= offset <= len(text)
