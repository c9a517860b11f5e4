"""Compares two runs: request, decisions, plan, prompt by parts, transcript and outcome.

Names of the run itself would always differ. In compared and shown values, its id, session id and
child key are therefore replaced by `{runId}`, `{sessionId}` and `{childSessionKey}`.
"""

import asyncio
import difflib
import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Literal
from uuid import UUID

from pydantic import Field, JsonValue
from pydantic.alias_generators import to_camel

from application.ports.transcripts import RecordedEntry
from application.queries.access import Caller
from application.queries.as_of import AsOf, resolve_as_of
from application.queries.changes.documents import PatchOperation
from application.queries.changes.json_patch import difference
from application.queries.command import PATHS, Command, Option
from application.queries.explain import RuleView, explanation_of
from application.queries.operation import ReadAsOf, operation
from application.queries.run_filter import RUN_ID_CHARACTERS
from application.queries.runs import entries_until, is_transcript_gone, readable_run
from application.queries.services import QueryServices
from application.queries.views.rule import ExplainedName
from application.queries.views.run import RUN_READERS, RunView, error_text, status_of, text_of
from application.queries.views.view import Answer, View, selection
from domain.explanation.record import RuleResult
from domain.run.events import RunStarted
from domain.run.facts import PromptPart
from domain.run.state import Run
from domain.spawn.dependencies import read_dependencies
from domain.values.record import ContentRef, Fact

ENTRIES_COMPARED_MAX = 2_000
ENTRIES_AT_ONCE = 200
DIFF_BYTES_MAX = 64 * 1024
DIFF_LINES_MAX = 1_000
"""Longer parts have no diff; they are only reported as different."""
DIFF_LINES_SHOWN_MAX = 400

PartVerdict = Literal["equal", "different", "left_only", "right_only", "erased"]


@selection("run_id", "label", "stage", "status", "config_revision")
class ComparedRunView(RunView):
    """One of the two runs."""


class ComparedSectionView(View):
    """A section of both runs, and the patch (RFC 6902) from left to right. `erased` lists members
    whose texts were erased and may have differed."""

    same: bool
    left: dict[str, JsonValue]
    right: dict[str, JsonValue]
    changes: list[PatchOperation]
    erased: list[str]


class ComparedRuleView(View):
    """The decision of a rule for one of the runs."""

    result: RuleResult
    compared: dict[str, JsonValue] | None
    text: str
    config_revision: int


class ComparedDecisionView(View):
    """A rule in both explanations; null on the side whose explanation lacks it."""

    step: str
    rule: ExplainedName
    same: bool
    left: ComparedRuleView | None
    right: ComparedRuleView | None


class PromptPartSideView(View):
    """A part of one of the prompts. `sha256` is the hash of its bytes; null if they were erased."""

    bytes: int
    sha256: str | None


class ComparedPartView(View):
    """A part of the prompts. `verdict` is `erased` if the part may have differed, which can no
    longer be verified. `diff` is a unified diff; null for equal parts and for parts that are too
    long."""

    of: Literal["systemPrompt", "message"]
    source: str
    verdict: PartVerdict
    left: PromptPartSideView | None
    right: PromptPartSideView | None
    diff: str | None


class ComparedPromptsView(View):
    """The prompts by their parts; a run that has not started has none."""

    same: bool
    parts: list[ComparedPartView]


class ComparedEntryView(View):
    """An entry of a transcript."""

    sequence: int
    kind: str
    body: dict[str, Any]


class FirstDifferenceView(View):
    """The first entries that differ; null on the side whose transcript had ended."""

    left: ComparedEntryView | None
    right: ComparedEntryView | None


class ComparedTranscriptsView(View):
    """Comparison of the transcripts: the number of entries of each (null while the run is running),
    the number of equal entries from the start, and the first entries that differ. `same` is null if
    the comparison stopped after many equal entries. If `erased`, entries of one of them were erased
    and may have differed."""

    same: bool | None
    left_entries: int | None
    right_entries: int | None
    equal_entries: int
    first_difference: FirstDifferenceView | None
    erased: bool


class RunComparisonView(View):
    """Two runs side by side. `same` is true if nothing differs; run time is ignored. `prompt` and
    `transcript` are null for a token without scope `content`."""

    same: bool
    left: ComparedRunView
    right: ComparedRunView
    request: ComparedSectionView
    decisions: list[ComparedDecisionView]
    plan: ComparedSectionView
    prompt: ComparedPromptsView | None
    transcript: ComparedTranscriptsView | None
    outcome: ComparedSectionView


class CompareRuns(ReadAsOf):
    """Parameters of `compare_runs`."""

    other: str = Field(
        alias="with",
        max_length=RUN_ID_CHARACTERS,
        description="The id of the run on the right side.",
    )


@operation(
    "GET",
    "/v1/runs/{runId}/compare",
    name="compareRuns",
    tag="runs",
    scope="read",
    summary="Show the differences between two runs",
    description=(
        "Compares the runs, now or as of `at`: requests, decisions by rule, plans, prompts by"
        " part, transcripts up to the first entry that differs, and outcomes. Names of a run"
        " itself would always differ, so its id, session id and child key appear as `{runId}`,"
        " `{sessionId}` and `{childSessionKey}`. Run time is shown but ignored in `same`. Prompts"
        " and transcripts require scope `content`."
    ),
    errors=("not_found",),
    command=Command(
        "run compare",
        "Show the differences between two runs.\n"
        "\n"
        "Compares their requests, decisions, plans, prompts, transcripts and outcomes. Exits with"
        " status 1 if anything differs.",
        arguments=("with",),
        options={
            "runId": replace(PATHS["runId"], metavar="LEFT"),
            "with": Option(
                metavar="RIGHT", means="run", help="The other run, named as the first one."
            ),
        },
        differs="same",
    ),
)
async def compare_runs(
    services: QueryServices, caller: Caller, run_id: str, query: CompareRuns
) -> Answer[RunComparisonView]:
    """Return a comparison of two runs that the caller may read, now or as of `at`."""
    moment = await resolve_as_of(services, caller, query.at)
    is_full = caller.may("content")
    left = _Side(await readable_run(services, caller, run_id, moment), is_full)
    right = _Side(await readable_run(services, caller, query.other, moment), is_full)
    refs = [ref for side in (left, right) for ref in side.texts().values() if ref is not None]
    contents = services.work.contents
    texts = await (contents.texts if is_full else contents.previews)(refs)
    request, plan, outcome = (
        _section(left, right, names, texts) for names in (_REQUEST, _PLAN, _OUTCOME)
    )
    until = moment.position
    explained = [
        await explanation_of(services.work, side.run, until=until, full=is_full)
        for side in (left, right)
    ]
    decisions = _decisions(left, right, *(explanation.decisions for explanation in explained))
    prompt = await _prompts(services, left, right) if is_full else None
    transcript = await _transcripts(services, left, right, moment) if is_full else None
    view = RunComparisonView(
        same=all(section.same for section in (request, plan, outcome))
        and all(decision.same for decision in decisions)
        and (prompt is None or prompt.same)
        and (transcript is None or transcript.same is not False),
        left=left.view(),
        right=right.view(),
        request=request,
        decisions=decisions,
        plan=plan,
        prompt=prompt,
        transcript=transcript,
        outcome=outcome,
    )
    return Answer(view, moment.position)


# The compared fields, by their names in `RunView` where it has them.

_REQUEST = (
    "requester_session_key", "requested_agent_id", "label", "task", "context_preamble",
    "model_argument", "thinking_argument", "task_bytes", "cause", "options", "thread",
    "attachments", "depends_on",
)  # fmt: skip
_PLAN = ("agent_id", "depth", "role", "control_scope", "context_mode", "lane", "warnings", "plan")
_OUTCOME = (
    "status", "outcome", "reason", "rule", "error", "result_text", "result_bytes", "usage",
    "estimated_cost_usd", "runtime_ms",
)  # fmt: skip
_READERS: Mapping[str, Callable[[Run], Any]] = {
    **RUN_READERS,
    "cause": lambda run: RUN_READERS["cause"](run) or "spawn",
    "attachments": lambda run: run.attachments.count if run.attachments is not None else 0,
    "task_bytes": attrgetter("task.bytes"),
    "result_bytes": lambda run: run.result.bytes if run.result is not None else None,
    "reason": attrgetter("end_reason"),
}
"""Readers of the fields that are not attributes of the state."""
_IN_PLACE = ("options", "plan")
"""Facts whose members are listed among the other fields."""
_TEXTS: Mapping[str, Callable[[Run], ContentRef | None]] = {
    "task": attrgetter("task"),
    "model_argument": attrgetter("model_argument"),
    "thinking_argument": attrgetter("thinking_argument"),
    "error": error_text,
    "depends_on": attrgetter("dependencies_argument"),
    "context_preamble": attrgetter("preamble"),
    "result_text": attrgetter("result"),
}
_FOR_CONTENT = ("depends_on", "context_preamble", "result_text")
"""Texts that require scope `content`."""


@dataclass(frozen=True, slots=True)
class _Side:
    """One of the two runs, with whole texts, or with previews where these are permitted."""

    run: Run
    is_full: bool

    def view(self) -> ComparedRunView:
        return ComparedRunView.from_source(self.run, status=status_of(self.run))

    def plain(self, value: Any) -> Any:
        """Return the value with the run's own names replaced by placeholders."""
        if isinstance(value, str):
            run = self.run
            if run.child_session_key is not None:
                value = value.replace(run.child_session_key, "{childSessionKey}")
            value = value.replace(str(run.session_id), "{sessionId}")
            return value.replace(str(run.run_id), "{runId}")
        if isinstance(value, dict):
            return {name: self.plain(member) for name, member in value.items()}
        return [self.plain(item) for item in value] if isinstance(value, list | tuple) else value

    def texts(self) -> dict[str, ContentRef | None]:
        """Return references to the texts of the sections, by field."""
        return {
            name: read(self.run)
            for name, read in _TEXTS.items()
            if self.is_full or name not in _FOR_CONTENT
        }

    def document(self, names: Sequence[str], texts: Mapping[UUID, str]) -> dict[str, Any]:
        """Return these fields of the run as JSON."""
        refs, members = self.texts(), dict[str, Any]()
        for name in names:
            if name == "depends_on":
                members["dependsOn"] = self._dependencies(refs.get(name), texts)
            elif name in refs:
                members[to_camel(name)] = text_of(refs[name], texts)
            elif name not in _TEXTS:
                value = _READERS.get(name, attrgetter(name))(self.run)
                value = value.members() if isinstance(value, Fact) else value
                members |= (value or {}) if name in _IN_PLACE else {to_camel(name): value}
        plain: dict[str, Any] = self.plain(members)
        return plain

    def _dependencies(
        self, ref: ContentRef | None, texts: Mapping[UUID, str]
    ) -> list[dict[str, str]]:
        """Return the requested dependencies, even if one of the names matched no run."""
        text = text_of(ref, texts)
        unbound = read_dependencies(text) if text is not None else ()
        return [
            {"name": dependency.name, "via": dependency.via, "require": dependency.require}
            for dependency in self.run.dependencies or unbound
        ]


def _section(
    left: _Side, right: _Side, names: Sequence[str], texts: Mapping[UUID, str]
) -> ComparedSectionView:
    refs, others = left.texts(), right.texts()
    erased = [
        to_camel(name)
        for name in names
        if (ref := refs.get(name)) != (other := others.get(name))
        if any(text_ref is not None and text_ref.id not in texts for text_ref in (ref, other))
    ]
    documents = left.document(names, texts), right.document(names, texts)
    changes = difference(*documents)
    counted = [change for change in changes if change["path"] != "/runtimeMs"]
    return ComparedSectionView(
        same=not counted and not erased,
        left=documents[0],
        right=documents[1],
        changes=changes,
        erased=erased,
    )


# Decisions.


def _decisions(
    left: _Side, right: _Side, left_rules: Sequence[RuleView], right_rules: Sequence[RuleView]
) -> list[ComparedDecisionView]:
    """Return every rule of the left run in order, then those that only the right run has."""
    ours, others = _by_name(left_rules), _by_name(right_rules)
    found = []
    for key in [*ours, *(key for key in others if key not in ours)]:
        left_view = _rule_view(left, ours.get(key))
        right_view = _rule_view(right, others.get(key))
        same = (
            left_view is not None
            and right_view is not None
            and (left_view.result, _counted(left_view.compared))
            == (right_view.result, _counted(right_view.compared))
        )
        found.append(
            ComparedDecisionView(
                step=key[0], rule=key[1], same=same, left=left_view, right=right_view
            )
        )
    return found


def _counted(compared: Mapping[str, JsonValue] | None) -> Mapping[str, JsonValue] | None:
    """Return the facts to compare.

    Durations are left out, and so is the source of the requester's depth, which differs for its
    first child.
    """
    if compared is None:
        return None
    return {name: value for name, value in compared.items() if name not in _NOT_COUNTED}


_NOT_COUNTED = frozenset({"durationMs", "depthFrom"})


def _by_name(rules: Sequence[RuleView]) -> dict[tuple[str, str, int], RuleView]:
    """Return the rules by step and name, numbered if repeated, as for several scripts."""
    counts = Counter[tuple[str, str]]()
    found: dict[tuple[str, str, int], RuleView] = {}
    for rule in rules:
        counts[rule.step, rule.rule] += 1
        found[rule.step, rule.rule, counts[rule.step, rule.rule]] = rule
    return found


def _rule_view(side: _Side, rule: RuleView | None) -> ComparedRuleView | None:
    if rule is None:
        return None
    return ComparedRuleView.from_source(
        rule, compared=side.plain(rule.compared), text=side.plain(rule.text)
    )


# Prompts.


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a prompt and its bytes; None if they were erased."""

    part: PromptPart
    data: bytes | None

    def view(self) -> PromptPartSideView:
        """Return the size and hash of the part."""
        digest = hashlib.sha256(self.data).hexdigest() if self.data is not None else None
        return PromptPartSideView(bytes=self.part.end - self.part.start, sha256=digest)


PartKey = tuple[Literal["systemPrompt", "message"], str, int]


async def _prompts(services: QueryServices, left: _Side, right: _Side) -> ComparedPromptsView:
    ours, others = await _parts(services, left.run), await _parts(services, right.run)
    same_key = left.run.session_id == right.run.session_id
    views = []
    for key in [*ours, *(key for key in others if key not in ours)]:
        views.append(_part_view(key, left, right, ours.get(key), others.get(key), same_key))
        # A diff takes long, so let other requests run in between.
        await asyncio.sleep(0)
    return ComparedPromptsView(same=all(part.verdict == "equal" for part in views), parts=views)


async def _parts(services: QueryServices, run: Run) -> dict[PartKey, _Part]:
    if run.system_prompt is None or run.message is None:
        return {}
    recorded = await services.work.log.first("RunStarted", run.run_id)
    assert recorded is not None
    assert isinstance(recorded.event, RunStarted)
    texts = await services.work.contents.texts((run.system_prompt, run.message))
    data = {
        "systemPrompt": texts.get(run.system_prompt.id),
        "message": texts.get(run.message.id),
    }
    counts = Counter[tuple[str, str]]()
    found: dict[PartKey, _Part] = {}
    for part in recorded.event.parts:
        text = data[part.of]
        taken = text.encode()[part.start : part.end] if text is not None else None
        counts[part.of, part.source] += 1
        found[part.of, part.source, counts[part.of, part.source]] = _Part(part, taken)
    return found


def _part_view(
    key: PartKey,
    left: _Side,
    right: _Side,
    ours: _Part | None,
    theirs: _Part | None,
    same_key: bool,
) -> ComparedPartView:
    verdict: PartVerdict
    diff: str | None = None
    if ours is None or theirs is None:
        verdict = "right_only" if ours is None else "left_only"
    elif same_key and ours.part.hmac == theirs.part.hmac:
        # Within one session the recorded keyed hashes are comparable, even of erased texts.
        verdict = "equal"
    elif ours.data is None or theirs.data is None:
        verdict = "erased"
    else:
        texts = [
            side.plain(data.decode("utf-8", "replace"))
            for side, data in ((left, ours.data), (right, theirs.data))
        ]
        verdict = "equal" if texts[0] == texts[1] else "different"
        diff = unified_diff(*texts) if verdict == "different" else None
    return ComparedPartView(
        of=key[0],
        source=key[1],
        verdict=verdict,
        left=ours.view() if ours is not None else None,
        right=theirs.view() if theirs is not None else None,
        diff=diff,
    )


def unified_diff(left: str, right: str) -> str | None:
    """Return a unified diff with three lines of context, or None if a text is too long."""
    if max(len(left), len(right)) > DIFF_BYTES_MAX:
        return None
    sides = left.splitlines(), right.splitlines()
    if max(map(len, sides)) > DIFF_LINES_MAX:
        return None
    lines = list(difflib.unified_diff(*sides, "left", "right", lineterm=""))
    more = len(lines) - DIFF_LINES_SHOWN_MAX
    if more > 0:
        lines[DIFF_LINES_SHOWN_MAX:] = [f"({more} more lines)"]
    return "\n".join(lines)


# Transcripts.


async def _transcripts(
    services: QueryServices, left: _Side, right: _Side, moment: AsOf
) -> ComparedTranscriptsView:
    ends = [await entries_until(services, side.run, moment) for side in (left, right)]
    counts = [
        side.run.transcript.count if side.run.transcript is not None else None
        for side in (left, right)
    ]
    if any([await is_transcript_gone(services, side.run) for side in (left, right)]):
        # Within one session the recorded keyed hashes are comparable, even of erased texts.
        seals = [(side.run.session_id, side.run.transcript) for side in (left, right)]
        return ComparedTranscriptsView(
            same=left.run.transcript is not None and seals[0] == seals[1],
            left_entries=counts[0],
            right_entries=counts[1],
            equal_entries=0,
            first_difference=None,
            erased=True,
        )
    equal = 0
    first: FirstDifferenceView | None = None
    same: bool | None = None
    while equal < ENTRIES_COMPARED_MAX and first is None:
        ours, others = [
            await _entries(services, side.run, after=equal, until=end)
            for side, end in zip((left, right), ends, strict=True)
        ]
        for number in range(max(len(ours), len(others))):
            left_entry = _entry_view(left, ours[number]) if number < len(ours) else None
            right_entry = _entry_view(right, others[number]) if number < len(others) else None
            if (
                left_entry is None
                or right_entry is None
                or (left_entry.kind, left_entry.body) != (right_entry.kind, right_entry.body)
            ):
                first = FirstDifferenceView(left=left_entry, right=right_entry)
                break
            equal += 1
        if len(ours) < ENTRIES_AT_ONCE and len(others) < ENTRIES_AT_ONCE:
            same = first is None
            break
    return ComparedTranscriptsView(
        same=False if first is not None else same,
        left_entries=counts[0],
        right_entries=counts[1],
        equal_entries=equal,
        first_difference=first,
        erased=False,
    )


async def _entries(
    services: QueryServices, run: Run, *, after: int, until: int | None
) -> list[RecordedEntry]:
    found = await services.transcripts.read(run.run_id, after=after, limit=ENTRIES_AT_ONCE)
    return [entry for entry in found if until is None or entry.sequence <= until]


def _entry_view(side: _Side, entry: RecordedEntry) -> ComparedEntryView:
    return ComparedEntryView.from_source(entry, body=side.plain(entry.body))
