"""What is wrong with a configuration, in words that tell the reader where and what to do."""

from collections.abc import Iterable
from dataclasses import dataclass

_PART_CHARACTERS_MAX = 80


@dataclass(frozen=True)
class ConfigurationProblem:
    """One mistake.

    `source` is what the reader would open or type: a file name, an environment variable, a flag.
    `pointer` is the JSON pointer (RFC 6901) of the value or key, "" for the whole document.
    `line` and `column` count from 1 and are None where there is no text. `nearest` is the key
    that was probably meant.
    """

    message: str
    source: str = "configuration"
    pointer: str = ""
    line: int | None = None
    column: int | None = None
    nearest: str | None = None

    def __str__(self) -> str:
        place = _printable(self.source)
        if self.line is not None:
            place += f":{self.line}"
            if self.column is not None:
                place += f":{self.column}"
        named = f"{place}: {dotted_path(self.pointer)}: " if self.pointer else f"{place}: "
        hint = f'; did you mean "{self.nearest}"?' if self.nearest else ""
        return f"{named}{self.message}{hint}"


class ConfigurationError(Exception):
    """A configuration that cannot be used; `problems` is never empty and in reading order."""

    def __init__(self, problems: Iterable[ConfigurationProblem]) -> None:
        self.problems = tuple(problems)
        if not self.problems:
            raise ValueError("a configuration error names at least one problem")
        super().__init__("\n".join(str(problem) for problem in self.problems))

    def __reduce__(
        self,
    ) -> tuple[type["ConfigurationError"], tuple[tuple[ConfigurationProblem, ...]]]:
        return type(self), (self.problems,)


def pointer_of(parts: Iterable[str | int]) -> str:
    """The JSON pointer of a path: `("a", 0, "b/c")` is `/a/0/b~1c`."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def parts_of(pointer: str) -> tuple[str, ...]:
    """The parts of a JSON pointer, all as text; ValueError when it is not one."""
    if not pointer:
        return ()
    if not pointer.startswith("/"):
        raise ValueError(f"not a JSON pointer: {pointer!r}")
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/"))


def dotted_path(pointer: str) -> str:
    """The pointer as people write it: `/agents/list/0/id` is `agents.list[0].id`."""
    written = ""
    for whole in parts_of(pointer):
        part = _printable(whole)
        if len(part) > _PART_CHARACTERS_MAX:
            part = part[:_PART_CHARACTERS_MAX] + "…"
        if part.isdecimal():
            written += f"[{part}]"
        elif not part or any(sign in part for sign in '. []"\\'):
            written += f'["{part}"]'
        else:
            written += f".{part}" if written else part
    return written


def _printable(text: str) -> str:
    """The text itself, or with escapes for what would upset a terminal or an encoding."""
    return text if text.isprintable() else ascii(text)[1:-1]
