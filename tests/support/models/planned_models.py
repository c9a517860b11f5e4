"""Model of the choice of a child's model.

Nothing of `domain` is used: if a rule changes there, it must be changed here as well.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.support.builders.configured_spawns import Named
from tests.support.models import plan_words as words


@dataclass(frozen=True)
class Choice:
    """The chosen model, or None if the runtime chooses.

    `is_first` is True if it is the first that was named, and None if none was. `verdicts` has one
    for every name in any place.
    """

    name: str | None
    source: str
    is_first: bool | None
    warnings: tuple[str, ...]
    verdicts: tuple[dict[str, Any], ...]

    @property
    def provider(self) -> str | None:
        """Return the part before the first slash."""
        return _halves(self.name)[0] if self.name else None

    @property
    def model(self) -> str | None:
        """Return the part after the first slash."""
        return _halves(self.name)[1] if self.name else None


def chosen(
    argument: str | None,
    places: Mapping[str, Named],
    aliases: Mapping[str, str],
    served: Sequence[str] | None,
    listed: Sequence[str],
) -> Choice:
    """Return the first name that can be served.

    `places` are those after the argument, in order; `listed` are the names that the file lists with
    a provider.
    """
    verdicts: list[dict[str, Any]] = []
    skipped: list[tuple[str, str]] = []
    taken: tuple[str, str] | None = None
    is_unnamed = argument in words.FREE_TEXT and argument.lower() not in aliases
    if is_unnamed:
        verdicts.append({"source": "argument", "reference": None, "verdict": "no_name"})
        argument = None
    for place, value in {"argument": argument, **places}.items():
        for short in _names(value):
            name = short if "/" in short else aliases.get(short.lower(), short)
            verdict = "not_served"
            if taken is not None:
                verdict = "not_reached"
            elif name in words.ODD:
                verdict = "no_name"
            elif served is None or any(_offers(entry, name, listed) for entry in served):
                verdict = "taken"
                taken = place, name
            if verdict in ("not_served", "no_name"):
                skipped.append((place, name))
            reference = None if name in words.ODD else name
            verdicts.append({"source": place, "reference": reference, "verdict": verdict})
    source, running = taken or ("runtime", None)
    unnamed = (words.UNNAMED,) if is_unnamed else ()
    warnings = [words.skipped(name, place, running) for place, name in skipped]
    is_first = taken is not None and not skipped and not is_unnamed
    result = (*unnamed, *warnings)
    return Choice(running, source, is_first if verdicts else None, result, tuple(verdicts))


def _names(named: Named) -> list[str]:
    """Return the names in one place. Fallbacks without a primary do not count."""
    if named is None:
        return []
    listed = [named] if isinstance(named, str) else list(named)
    if not listed[0].strip():
        return []
    return [name.strip() for name in listed if name.strip()]


def _halves(name: str) -> tuple[str | None, str]:
    """Provider and model."""
    provider, slash, model = name.partition("/")
    return (provider, model) if slash and provider and model else (None, name)


def _offers(entry: str, name: str, listed: Sequence[str]) -> bool:
    """Return True if an entry in the list of a runtime matches a model."""
    provider, model = _halves(name)
    if entry == "*":
        return True
    if entry.endswith("/*"):
        # A bare name means the model of the providers under which the file lists it.
        meant = [item for item in listed if provider is None and _halves(item)[1] == name]
        return any(text.startswith(entry[:-1]) for text in (name, *meant))
    if "/" in entry and provider is not None:
        return entry == name
    return _halves(entry)[1] == model
