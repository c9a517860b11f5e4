"""Tokens that a file gives out: who holds one, what it may do, and for which sessions."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from domain.configuration.secrets import SecretReference, variable_named_by
from domain.configuration.sections import NameText, OwnSection, section_error
from domain.values.session_key import fold_part

TokenScope = Literal["spawn", "read", "content", "control", "worker", "admin"]

_ADVICE = 'write "${NAME}" for an environment variable or {"file": "path"} for a file'


def _pattern(text: str) -> str:
    if len(text.encode()) > 512:
        raise section_error("sessions", "must be at most 512 bytes")
    return ":".join(fold_part(part) for part in text.split(":"))


class TokenSource(OwnSection):
    """Where the token's text comes from: exactly one of an environment variable, a file, and (in
    a revision read back) the file the revision was read from."""

    variable: NameText | None = None
    file: NameText | None = None
    secret: SecretReference | None = None


def _source(value: Any) -> Any:
    if isinstance(value, TokenSource):
        return value
    if isinstance(value, str):
        name = variable_named_by(value)
        if name is None:
            raise section_error("token", f"a token must not stand in the file; {_ADVICE}")
        return {"variable": name}
    if isinstance(value, dict) and set(value) == {"file"}:
        return value
    if isinstance(value, dict) and set(value) == {"$secret"}:
        return {"secret": value}
    raise section_error("token", f"must be a reference; {_ADVICE}")


class Token(OwnSection):
    """One token. `sessions` are patterns of session keys in which `*` stands for anything."""

    id: Annotated[NameText, Field(max_length=64)]
    token: Annotated[TokenSource, BeforeValidator(_source)]
    scopes: Annotated[tuple[TokenScope, ...], Field(min_length=1)]
    sessions: Annotated[
        tuple[Annotated[NameText, AfterValidator(_pattern)], ...], Field(min_length=1)
    ]
