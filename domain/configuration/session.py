"""The `session` section: how the main session of an agent is called."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from domain.configuration.sections import SharedSection, Text, wrong


def _main_key(text: str) -> str:
    if not text.isprintable():
        raise wrong("main_key", "must not contain control characters")
    return text.strip().lower() or "main"


class Session(SharedSection):
    """`main_key` is trimmed and in lower case; blank means `main`."""

    main_key: Annotated[Text, AfterValidator(_main_key), Field(max_length=128)] = "main"
    scope: Literal["per-sender", "global"] = "per-sender"

    @property
    def main_alias(self) -> str:
        """What `main` stands for: `global` where all senders share one session."""
        return "global" if self.scope == "global" else self.main_key
