"""Every spelling of a session key has one canonical form."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.values.session_key import (
    SESSION_KEY_BYTES_MAX,
    InvalidSessionKeyError,
    canonical_session_key,
    child_key,
    render_session_key,
)

UUID = "6f1f7c1e-3c5b-4f5e-9a7c-0d8f3a1b2c4d"
part = st.text(alphabet="abcxyz019_-", min_size=1, max_size=8).filter(
    lambda text: text[0] not in "_-"
)
parts = st.lists(part, min_size=1, max_size=5)


@pytest.mark.parametrize(
    ("given_key", "expected"),
    [
        ("main", "agent:main:main"),
        (" MAIN ", "agent:main:main"),
        (":main:", "agent:main:main"),
        ("agent:main:main", "agent:main:main"),
        ("AGENT:Main:Hook::Webhook:42", "agent:main:hook:webhook:42"),
        ("agent: main : main", "agent:main:main"),
        ("telegram:direct:1", "agent:main:telegram:direct:1"),
        ("subagent:x", "agent:main:subagent:x"),
        ("agent", "agent:main:agent"),
        ("global", "agent:main:global"),
    ],
)
def test_key_has_one_form(given_key: str, expected: str) -> None:
    assert canonical_session_key(given_key) == expected


def test_key_of_exactly_the_limit_is_a_key() -> None:
    key = "agent:main:" + "x" * 501
    assert len(key) == 512
    assert canonical_session_key(f" {key} ") == key
    with pytest.raises(InvalidSessionKeyError):
        canonical_session_key(key + "x")


@pytest.mark.parametrize("spelling", ["main", "work", "global", "GLOBAL", ":global"])
def test_under_global_scope_all_aliases_are_global(spelling: str) -> None:
    assert canonical_session_key(spelling, main_key="work", scope="global") == "global"


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "  ",
        ":::",
        "agent:main",
        "agent::broken",
        "agent:../x:main",
        "agent:_x:main",
        "a\nb",
        "a\x00b",
        "a\u202eb",
        "a\u200bb",
        "a\u034fb",
        "a\ufe0fb",
        "a\u3164b",
        "a\U000e0101b",
        "a\ud800",
        "x" * 513,
        "ü" * 257,
        "x" * 505,
    ],
)
def test_invalid_session_key_is_refused_with_a_reason(bad: str) -> None:
    with pytest.raises(InvalidSessionKeyError) as caught:
        canonical_session_key(bad)
    assert "session key" in caught.value.message.lower()


@pytest.mark.parametrize(
    ("first", "second"),
    [("agent:main:café", "agent:main:cafe\u0301"), ("ΟΔΟΣ", "οδοσ"), ("ΑΣ", "ας"), ("Å", "Å")],
)
def test_keys_that_look_alike_are_one(first: str, second: str) -> None:
    assert canonical_session_key(first) == canonical_session_key(second)


@settings(deadline=None)
@given(
    st.text(max_size=60),
    st.sampled_from(["main", "work", " Work ", "a:b"]),
    st.sampled_from(["per-sender", "global"]),
)
def test_canonicalising_twice_changes_nothing(text: str, main_key: str, scope: str) -> None:
    assert scope in ("per-sender", "global")
    try:
        once = canonical_session_key(text, main_key=main_key, scope=scope)  # type: ignore[arg-type]
    except InvalidSessionKeyError:
        return
    again = canonical_session_key(once, main_key=main_key, scope=scope)  # type: ignore[arg-type]
    assert again == once
    assert len(once.encode()) <= SESSION_KEY_BYTES_MAX


@settings(deadline=None)
@given(parts, st.booleans(), st.data())
def test_every_spelling_of_a_key_gives_one_form(
    written: list[str], with_agent: bool, data: st.DataObject
) -> None:
    plain = ["agent", "main", *written] if with_agent else written
    if plain[0] == "agent" and len(plain) < 3:
        plain = ["agent", "main", "x"]

    def spelled(text: str) -> str:
        cased = "".join(data.draw(st.sampled_from([sign, sign.upper()])) for sign in text)
        return data.draw(st.sampled_from(["", " "])) + cased + data.draw(st.sampled_from(["", " "]))

    separators = [data.draw(st.sampled_from([":", "::", ": :"])) for _ in plain[1:]]
    ends = data.draw(st.sampled_from(["", ":", "\t"])), data.draw(st.sampled_from(["", ":", "\n"]))
    spelling = ends[0] + spelled(plain[0])
    for separator, text in zip(separators, plain[1:], strict=True):
        spelling += separator + spelled(text)
    assert canonical_session_key(spelling + ends[1]) == canonical_session_key(":".join(plain))


def test_display_key_of_an_alias_is_main() -> None:
    assert render_session_key(" Main ") == "main"
    assert render_session_key("work", main_key="work") == "main"
    assert render_session_key("global", scope="global") == "main"
    assert render_session_key("global") == "global"
    assert render_session_key(" AGENT:Main:X ") == "AGENT:Main:X"


@pytest.mark.parametrize(("agent_id", "uuid"), [("a b", UUID), ("main", "not-a-uuid"), ("", UUID)])
def test_child_key_is_made_of_nothing_else(agent_id: str, uuid: str) -> None:
    with pytest.raises(ValueError, match="not a"):
        child_key(agent_id, uuid)


@pytest.mark.parametrize("key", ["agent:", " Agent : ", "agent::", "agent:x"])
def test_agent_key_names_agent_and_session(key: str) -> None:
    with pytest.raises(InvalidSessionKeyError):
        canonical_session_key(key)
