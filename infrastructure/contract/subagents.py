"""Sub-agents in the texts, numbers and names of the command and the tool `subagents`."""

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
    """A target that is invalid or ambiguous. The message is for the caller."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class UnknownTargetError(TargetError):
    """A target that matches nothing."""


@dataclass(frozen=True, slots=True)
class TargetWords:
    """Names of the target in errors, which differ between the command and the tool."""

    target: str
    run_id_prefix: str


COMMAND_WORDS = TargetWords("subagent id", "run id prefix")
TOOL_WORDS = TargetWords("subagent target", "subagent run id prefix")


@dataclass(frozen=True, slots=True)
class Subagent:
    """A child of a session, by its newest run as the server shows it.

    `now` is the time of the answer. `pending` is the number of active descendants.
    """

    run: Mapping[str, Any]
    now: datetime
    pending: int = 0

    @property
    def run_id(self) -> str:
        return str(self.run.get("runId"))

    @property
    def is_active(self) -> bool:
        """Return True until its report was announced: it, or a descendant, may still be active."""
        return self.run.get("stage") not in _OVER

    @property
    def label(self) -> str:
        """Return its label, or else its task."""
        name = self.run.get("label") or self.run.get("task") or self.run.get("taskPreview")
        return single_line(str(name or ""), characters_max=_LABEL_CHARACTERS_MAX) or "subagent"

    @property
    def short_task(self) -> str:
        """Return its task on one line, cut if it is long."""
        task = self.run.get("task") or self.run.get("taskPreview")
        return single_line(str(task or ""), characters_max=_LABEL_CHARACTERS_MAX)

    @property
    def short_id(self) -> str:
        """Return a prefix of its run id."""
        return self.run_id[:SHORT_ID_CHARACTERS]

    @property
    def runtime_ms(self) -> float | None:
        """Return the runtime of its run so far, in milliseconds; None if it has not started."""
        took = self.run.get("runtimeMs")
        if isinstance(took, int | float):
            return took
        began = self.run.get("startedAt")
        if not self.is_active or not began:
            return None
        return max(0.0, (self.now - datetime.fromisoformat(str(began))).total_seconds() * 1000)

    @property
    def status(self) -> str:
        """Return `running`, `done`, `failed`, `timeout`, `killed`, or how many children it waits
        for.
        """
        if self.pending and self.run.get("stage") == "ended":
            children = "child" if self.pending == 1 else "children"
            return f"active (waiting on {self.pending} {children})"
        if self.is_active:
            return "running"
        return _STATUS_BY_OUTCOME.get(str(self.run.get("outcome")), "failed")


@dataclass(frozen=True, slots=True)
class Subagents:
    """The children of a session, newest first: active ones, and those that ended recently."""

    active: tuple[Subagent, ...]
    recent: tuple[Subagent, ...]

    @property
    def numbered(self) -> tuple[Subagent, ...]:
        """Return all of them in the order of their numbers, from 1."""
        return (*self.active, *self.recent)


def subagents_of(
    runs: Sequence[Mapping[str, Any]], now: datetime, recent: timedelta = RECENT
) -> Subagents:
    """Return the children with these runs.

    A child with several runs is shown by its newest. Refused runs are left out.

    Args:
        runs: Runs of one requester, as the server shows them.
        now: Time of the answer.
        recent: How long ago a child may have ended.
    """
    newest: dict[str, Subagent] = {}
    for run in sorted(runs, key=_began, reverse=True):
        key = run.get("childSessionKey")
        if key is not None and run.get("stage") != "refused":
            newest.setdefault(str(key), Subagent(run, now))
    children = tuple(newest.values())
    ended = [child for child in children if not child.is_active]
    return Subagents(
        active=tuple(child for child in children if child.is_active),
        recent=tuple(child for child in ended if _ended_since(child, now - recent)),
    )


def list_text(
    subagents: Subagents, recent_heading: str = RECENT_OF_COMMAND, ellipsis: str = ELLIPSIS
) -> str:
    """Return both lists as text, numbered throughout. `ellipsis` marks a cut."""

    def rows(part: Sequence[Subagent], first: int) -> list[str]:
        lines = [_line(number, child, ellipsis) for number, child in enumerate(part, first)]
        return lines or ["(none)"]

    active = rows(subagents.active, 1)
    recent = rows(subagents.recent, len(subagents.active) + 1)
    heads = ("active subagents:", "-----"), ("", recent_heading, "-----")
    return "\n".join([*heads[0], *active, *heads[1], *recent])


def find_subagent(
    subagents: Subagents, target: str, words: TargetWords = COMMAND_WORDS
) -> Subagent:
    """Return the sub-agent that a target names.

    A target is `last`, a number, a child session key, a label or its prefix, or a prefix of a run
    id.

    Raises:
        UnknownTargetError: Nothing matches.
        TargetError: The target is empty or ambiguous.
    """
    name, known = target.strip(), subagents.numbered
    if not name:
        raise TargetError(f"Missing {words.target}.")
    if name == "last":
        if not known:
            raise UnknownTargetError(f"Unknown {words.target}: {name}")
        return max(known, key=lambda child: _began(child.run))
    index = _INDEX.fullmatch(name)
    if index is not None:
        number = int(index[1])
        if not 0 < number <= len(known):
            raise UnknownTargetError(f"Invalid subagent index: {name}")
        return known[number - 1]
    if ":" in name:
        by_key = [child for child in known if child.run.get("childSessionKey") == name]
        return _only(by_key, None, f"Unknown subagent session: {name}")
    labels = {child.run_id: child.label.lower() for child in known}
    by_label = [child for child in known if labels[child.run_id] == name.lower()]
    if by_label:
        return _only(by_label, f"Ambiguous subagent label: {name}", "")
    by_prefix = [child for child in known if labels[child.run_id].startswith(name.lower())]
    if by_prefix:
        return _only(by_prefix, f"Ambiguous subagent label prefix: {name}", "")
    by_id = [child for child in known if child.run_id.startswith(name)]
    several = f"Ambiguous {words.run_id_prefix}: {name}"
    return _only(by_id, several, f"Unknown {words.target}: {name}")


def info_text(subagent: Subagent) -> str:
    """Return all facts of a sub-agent as text."""
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
        "Stopped by": run.get("stopRequestedBy"),
        "Stop reason": run.get("stopReason"),
        "Delivery": (run.get("announcement") or {}).get("state"),
    }
    lines = [f"{name}: {text}" for name, text in facts.items() if text is not None]
    return "\n".join(["ℹ️ Subagent info", *lines])


def log_text(subagent: Subagent, entries: Sequence[Mapping[str, Any]], limit: int) -> str:
    """Return the last `limit` messages as text, with tool calls if the entries include them."""
    lines = [line for line in map(_entry_line, entries) if line][-limit:]
    return "\n".join([f"📜 Subagent log: {subagent.label}", *(lines or ["(no messages)"])])


def runtime_text(milliseconds: object) -> str:
    """Return a runtime such as `340ms`, `42s`, `5m12s`, `1h5m` or `1d2h`, without zero parts."""
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
    """Return `tokens 1k (in 12 / out 1k), prompt/cache 197k`, or None if no usage was reported."""
    if not isinstance(usage, Mapping):
        return None
    taken, given = _count(usage, "inputTokens"), _count(usage, "outputTokens")
    cached = _count(usage, "cacheReadTokens") + _count(usage, "cacheWriteTokens")
    text = f"tokens {_rounded(taken + given)} (in {_rounded(taken)} / out {_rounded(given)})"
    return f"{text}, prompt/cache {_rounded(taken + cached)}" if cached else text


def _line(number: int, subagent: Subagent, ellipsis: str) -> str:
    run = subagent.run
    name = _cut(subagent.label, NAME_CHARACTERS_MAX, ellipsis)
    facts = (run.get("model"), runtime_text(subagent.runtime_ms), tokens_text(run.get("usage")))
    shown = ", ".join(str(fact) for fact in facts if fact)
    task = _cut(str(run.get("task") or run.get("taskPreview") or ""), TASK_CHARACTERS_MAX, ellipsis)
    tail = f" - {task}" if task and task != subagent.label else ""
    return f"{number}. {name} ({shown}) {subagent.status}{tail}"


def _cut(text: str, characters_max: int, ellipsis: str) -> str:
    """Return the text on one line of at most `characters_max` characters, with this ellipsis."""
    line = single_line(text, characters_max=characters_max)
    if not line.endswith(ELLIPSIS) or ellipsis == ELLIPSIS:
        return line
    room = characters_max + len(ELLIPSIS) - len(ellipsis)
    return single_line(text, characters_max=room).removesuffix(ELLIPSIS) + ellipsis


def _only(matches: Sequence[Subagent], several: str | None, nothing: str) -> Subagent:
    if not matches:
        raise UnknownTargetError(nothing)
    if len(matches) > 1 and several is not None:
        raise TargetError(several)
    return matches[0]


def _entry_line(entry: Mapping[str, Any]) -> str | None:
    body = entry.get("body")
    facts: Mapping[str, Any] = body if isinstance(body, Mapping) else {"text": body}
    text = str(facts.get("text") or "").strip()
    if entry.get("kind") == "tool":
        took = facts.get("durationMs")
        time = f" ({runtime_text(took)})" if took is not None else ""
        return f"Tool: {facts.get('name') or ''}{time}"
    if not text or entry.get("kind") not in _SPOKEN:
        return None
    speaker = "User" if facts.get("role") == "user" else "Assistant"
    return f"{speaker}: {text}"


def _began(run: Mapping[str, Any]) -> str:
    return str(run.get("startedAt") or run.get("createdAt") or "")


def _ended_since(subagent: Subagent, since: datetime) -> bool:
    ended = subagent.run.get("endedAt")
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
