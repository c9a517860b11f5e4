"""Sub-agents as the slash command `/subagents` and the tool of that name show, number and name
them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from domain.values.text import ELLIPSIS, single_line

RECENT = timedelta(minutes=30)
RECENT_OF_COMMAND = "recent subagents (last 30m):"
NAME_CHARACTERS_MAX = 48
TASK_CHARACTERS_MAX = 110
SHORT_ID_CHARACTERS = 8
_LABEL_CHARACTERS_MAX = 72
_INDEX = re.compile(r"#?([0-9]+)")
_SPOKEN = ("message", "result", "text")
_OVER = ("announced", "archived")
_STATUS_BY_OUTCOME = {"success": "done", "timeout": "timeout", "stopped": "killed"}
_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


class TargetError(ValueError):
    """A target that cannot be one, or that means several; the message is for the caller."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class UnknownTarget(TargetError):
    """A target that means none."""


@dataclass(frozen=True, slots=True)
class TargetWords:
    """How the target is called in errors: the command and the tool have words of their own."""

    target: str
    run_id_prefix: str


COMMAND_WORDS = TargetWords("subagent id", "run id prefix")
TOOL_WORDS = TargetWords("subagent target", "subagent run id prefix")


@dataclass(frozen=True, slots=True)
class Subagent:
    """A child of a session by its newest run, as the server shows that, at the time `now`;
    `pending` is how many are at work below it."""

    run: Mapping[str, Any]
    now: datetime
    pending: int = 0

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return str(self.run.get("runId"))

    @property
    def is_active(self) -> bool:
        """Whether it, or one below it, is at work."""
        return self.run.get("stage") not in _OVER

    @property
    def label(self) -> str:
        """What it is called: its label, else its task."""
        name = self.run.get("label") or self.run.get("task") or self.run.get("taskPreview")
        return single_line(str(name or ""), characters_max=_LABEL_CHARACTERS_MAX) or "subagent"

    @property
    def short_task(self) -> str:
        """The beginning of its task."""
        task = self.run.get("task") or self.run.get("taskPreview")
        return single_line(str(task or ""), characters_max=_LABEL_CHARACTERS_MAX)

    @property
    def short_id(self) -> str:
        """The beginning of the run's id."""
        return self.run_id[:SHORT_ID_CHARACTERS]

    @property
    def runtime_ms(self) -> float | None:
        """How long its run took, or is at work by now; None for one that has not begun."""
        took = self.run.get("runtimeMs")
        if isinstance(took, int | float):
            return took
        began = self.run.get("startedAt")
        if not self.is_active or not began:
            return None
        return max(0.0, (self.now - datetime.fromisoformat(str(began))).total_seconds() * 1000)

    @property
    def status(self) -> str:
        """`running`, `done`, `failed`, `timeout`, `killed`, or what it waits for."""
        if self.pending and self.run.get("stage") == "ended":
            children = "child" if self.pending == 1 else "children"
            return f"active (waiting on {self.pending} {children})"
        if self.is_active:
            return "running"
        return _STATUS_BY_OUTCOME.get(str(self.run.get("outcome")), "failed")


@dataclass(frozen=True, slots=True)
class Subagents:
    """The children of a session: those at work, then those that ended lately, the newest first."""

    active: tuple[Subagent, ...]
    recent: tuple[Subagent, ...]

    @property
    def numbered(self) -> tuple[Subagent, ...]:
        """All of them; the first one has the number 1."""
        return (*self.active, *self.recent)


def subagents_of(
    runs: Sequence[Mapping[str, Any]], now: datetime, recent: timedelta = RECENT
) -> Subagents:
    """The children whose runs these are, and which of them ended lately. One that went on has the
    place of its newest run; what was refused is none."""
    newest: dict[str, Subagent] = {}
    for run in sorted(runs, key=_began, reverse=True):
        key = run.get("childSessionKey")
        if key is not None and run.get("stage") != "refused":
            newest.setdefault(str(key), Subagent(run, now))
    found = tuple(newest.values())
    return Subagents(
        active=tuple(one for one in found if one.is_active),
        recent=tuple(one for one in found if not one.is_active and _ended_since(one, now - recent)),
    )


def list_text(
    subagents: Subagents, recent_heading: str = RECENT_OF_COMMAND, ellipsis: str = ELLIPSIS
) -> str:
    """Both lists, numbered through; `ellipsis` ends what was cut."""

    def rows(part: Sequence[Subagent], first: int) -> list[str]:
        return [_line(number, one, ellipsis) for number, one in enumerate(part, first)] or [
            "(none)"
        ]

    active = rows(subagents.active, 1)
    recent = rows(subagents.recent, len(subagents.active) + 1)
    heads = ("active subagents:", "-----"), ("", recent_heading, "-----")
    return "\n".join([*heads[0], *active, *heads[1], *recent])


def find_subagent(
    subagents: Subagents, target: str, words: TargetWords = COMMAND_WORDS
) -> Subagent:
    """The one that is meant: `last`, a number, a child session key, a label or its beginning, the
    beginning of a run's id. Raises `UnknownTarget`, or `TargetError` for none and for several."""
    name, known = target.strip(), subagents.numbered
    if not name:
        raise TargetError(f"Missing {words.target}.")
    if name == "last":
        if not known:
            raise UnknownTarget(f"Unknown {words.target}: {name}")
        return max(known, key=lambda one: _began(one.run))
    index = _INDEX.fullmatch(name)
    if index is not None:
        number = int(index[1])
        if not 0 < number <= len(known):
            raise UnknownTarget(f"Invalid subagent index: {name}")
        return known[number - 1]
    if ":" in name:
        found = [one for one in known if one.run.get("childSessionKey") == name]
        return _only(found, None, f"Unknown subagent session: {name}")
    labels = {one.run_id: one.label.lower() for one in known}
    same = [one for one in known if labels[one.run_id] == name.lower()]
    if same:
        return _only(same, f"Ambiguous subagent label: {name}", "")
    begins = [one for one in known if labels[one.run_id].startswith(name.lower())]
    if begins:
        return _only(begins, f"Ambiguous subagent label prefix: {name}", "")
    by_id = [one for one in known if one.run_id.startswith(name)]
    several = f"Ambiguous {words.run_id_prefix}: {name}"
    return _only(by_id, several, f"Unknown {words.target}: {name}")


def info_text(subagent: Subagent) -> str:
    """Everything about one of them."""
    run, now = subagent.run, subagent.now
    outcome = run.get("outcome")
    error = f" ({run['error']})" if run.get("error") else ""
    facts = {
        "Status": subagent.status,
        "Label": subagent.label,
        "Task": run.get("task") or run.get("taskPreview"),
        "Run": subagent.run_id,
        "Session": run.get("childSessionKey"),
        "SessionId": run.get("sessionId"),
        "Transcript": run.get("transcriptPath") or "n/a",
        "Runtime": runtime_text(subagent.runtime_ms),
        "Created": _time_text(run.get("createdAt"), now),
        "Started": _time_text(run.get("startedAt"), now),
        "Ended": _time_text(run.get("endedAt"), now),
        "Cleanup": run.get("cleanup"),
        "Archive": run.get("archiveAt"),
        "Cleanup handled": "yes" if run.get("archivedAt") else None,
        "Outcome": f"{outcome}{error}" if outcome else "n/a",
        "Delivery": (run.get("announcement") or {}).get("state"),
    }
    lines = [f"{name}: {text}" for name, text in facts.items() if text is not None]
    return "\n".join(["ℹ️ Subagent info", *lines])


def log_text(subagent: Subagent, entries: Sequence[Mapping[str, Any]], limit: int) -> str:
    """What was said last, so many of it, and what tools were called if they are among the
    entries."""
    lines = [line for line in map(_entry_line, entries) if line][-limit:]
    return "\n".join([f"📜 Subagent log: {subagent.label}", *(lines or ["(no messages)"])])


def runtime_text(milliseconds: object) -> str:
    """`340ms`, `42s`, `5m12s`, `1h5m`, `1d2h`; parts that are zero are left out."""
    if not isinstance(milliseconds, int | float) or isinstance(milliseconds, bool):
        return "n/a"
    if milliseconds < 1000:
        return f"{milliseconds:.0f}ms"
    seconds = round(milliseconds / 1000)
    for place, (_, size) in enumerate(_UNITS):
        if seconds >= size:
            shown = _UNITS[place : place + 2]
            break
    parts = []
    for unit, size in shown:
        count, seconds = divmod(seconds, size)
        parts += [f"{count}{unit}"] if count else []
    return "".join(parts)


def tokens_text(usage: object) -> str | None:
    """`tokens 1k (in 12 / out 1k), prompt/cache 197k`; None where nothing was reported."""
    if not isinstance(usage, Mapping):
        return None
    taken, given = _count(usage, "inputTokens"), _count(usage, "outputTokens")
    cached = _count(usage, "cacheReadTokens") + _count(usage, "cacheWriteTokens")
    text = f"tokens {_rounded(taken + given)} (in {_rounded(taken)} / out {_rounded(given)})"
    return f"{text}, prompt/cache {_rounded(taken + cached)}" if cached else text


def _line(number: int, one: Subagent, ellipsis: str) -> str:
    run = one.run
    name = _cut(one.label, NAME_CHARACTERS_MAX, ellipsis)
    facts = (run.get("model"), runtime_text(one.runtime_ms), tokens_text(run.get("usage")))
    shown = ", ".join(str(fact) for fact in facts if fact)
    task = _cut(str(run.get("task") or run.get("taskPreview") or ""), TASK_CHARACTERS_MAX, ellipsis)
    tail = f" - {task}" if task and task != one.label else ""
    return f"{number}. {name} ({shown}) {one.status}{tail}"


def _cut(text: str, characters_max: int, ellipsis: str) -> str:
    """The text on one line of at most so many characters, with an ellipsis of the reader's."""
    line = single_line(text, characters_max=characters_max)
    if not line.endswith(ELLIPSIS) or ellipsis == ELLIPSIS:
        return line
    room = characters_max + len(ELLIPSIS) - len(ellipsis)
    return single_line(text, characters_max=room).removesuffix(ELLIPSIS) + ellipsis


def _only(found: Sequence[Subagent], several: str | None, nothing: str) -> Subagent:
    if not found:
        raise UnknownTarget(nothing)
    if len(found) > 1 and several is not None:
        raise TargetError(several)
    return found[0]


def _entry_line(entry: Mapping[str, Any]) -> str | None:
    body = entry.get("body")
    facts: Mapping[str, Any] = body if isinstance(body, Mapping) else {"text": body}
    text = str(facts.get("text") or "").strip()
    if entry.get("kind") == "tool":
        return f"Tool: {facts.get('name') or ''}"
    if not text or entry.get("kind") not in _SPOKEN:
        return None
    speaker = "User" if facts.get("role") == "user" else "Assistant"
    return f"{speaker}: {text}"


def _began(run: Mapping[str, Any]) -> str:
    return str(run.get("startedAt") or run.get("createdAt") or "")


def _ended_since(one: Subagent, since: datetime) -> bool:
    ended = one.run.get("endedAt")
    return ended is not None and datetime.fromisoformat(str(ended)) >= since


def _time_text(instant: object, now: datetime) -> str:
    if not instant:
        return "n/a"
    age = now - datetime.fromisoformat(str(instant))
    return f"{instant} ({runtime_text(max(0.0, age.total_seconds() * 1000))} ago)"


def _count(usage: Mapping[str, Any], name: str) -> int:
    return int(usage.get(name) or 0)


def _rounded(tokens: int) -> str:
    if tokens < 1000:
        return str(tokens)
    if tokens < 10_000:
        return f"{tokens / 1000:.1f}".removesuffix(".0") + "k"
    return f"{round(tokens / 1000)}k"
