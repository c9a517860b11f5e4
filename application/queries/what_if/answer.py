"""The answer to a what-if: verdicts page by page, in the order of the log, and the totals."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field, replace
from uuid import UUID

from application.log.envelope import RecordedEvent
from application.queries.errors import QueryError
from application.queries.services import QueryServices
from application.queries.views.view import Lines
from application.queries.views.what_if import (
    TotalsView,
    WhatIfFailureView,
    WhatIfLine,
    WhatIfProgressView,
    WhatIfTotalsView,
    WhatIfVerdictView,
)
from application.queries.what_if.cases import CaseReader, WhatIfCase, batch_of
from domain.run.events import MessageReceived, SpawnRequested
from domain.run.state import Run
from domain.session.events import ChildReleased
from domain.values.record import run_stream, session_key_of
from domain.what_if.batch import decide_batch_again
from domain.what_if.cascade import Cascade, CascadeTooLargeError
from domain.what_if.decide_again import DecidedAgain, decide_again
from domain.what_if.prompt import compare_prompts
from domain.what_if.verdict import VERDICTS, Verdict, VerdictName, not_replayable

EVENTS_AT_ONCE = 60
SECONDS_AT_ONCE = 0.005
"""Time spent on decisions before other requests are served."""
TEXT_BYTES_AT_ONCE = 4 * 1024 * 1024
"""Maximum bytes of texts read at once; more if one decision or batch needs more."""
PROGRESS_SECONDS = 1.0
AGENTS_COUNTED_MAX = 1_000
OTHER_AGENTS = "(others)"

_REQUESTS = (SpawnRequested.__name__, MessageReceived.__name__)
_Decided = list[tuple[WhatIfCase, Verdict]]


@dataclass(frozen=True, slots=True)
class Criteria:
    """The decisions to count, and the verdicts to return (all if `only` is empty)."""

    run_id: UUID | None
    tree: str | None
    requester: str | None
    agent_ids: frozenset[str]
    only: frozenset[VerdictName]

    def matches(self, run: Run) -> bool:
        """Return True if the decision about this run is counted."""
        asks = run.requester
        return (
            self.run_id in (None, run.run_id)
            and self.tree in (None, asks.root_session_key)
            and self.requester in (None, asks.session_key)
            and (not self.agent_ids or run.requested_agent_id in self.agent_ids)
        )


@dataclass(slots=True)
class _Totals:
    verdicts: Counter[str] = field(default_factory=Counter)
    agents: dict[str, Counter[str]] = field(default_factory=dict)
    rules: dict[str, Counter[str]] = field(default_factory=dict)

    def count(self, agent_id: str | None, verdict: Verdict) -> None:
        name = verdict.verdict
        self.verdicts[name] += 1
        agent = agent_id or OTHER_AGENTS
        if agent not in self.agents and len(self.agents) >= AGENTS_COUNTED_MAX:
            agent = OTHER_AGENTS
        self.agents.setdefault(agent, Counter())[name] += 1
        if verdict.rule is not None and name != "same":
            self.rules.setdefault(verdict.rule, Counter())[name] += 1

    def view(self, after: int, until: int) -> WhatIfTotalsView:
        totals = TotalsView(
            from_position=after + 1,
            to_position=until,
            decisions=self.verdicts.total(),
            by_verdict={name: self.verdicts[name] for name in VERDICTS},
            by_agent={agent: dict(those) for agent, those in sorted(self.agents.items())},
            by_rule={rule: dict(those) for rule, those in sorted(self.rules.items())},
        )
        return WhatIfTotalsView(totals=totals)


class WhatIfAnswer(Lines):
    """The lines of the answer, made as they are consumed. Iterate it once.

    The log is read after position `after`, up to `last`; everything else is read as of `until`.
    """

    def __init__(
        self,
        services: QueryServices,
        cases: CaseReader,
        criteria: Criteria,
        *,
        after: int,
        until: int,
        last: int,
        room: AsyncExitStack,
    ) -> None:
        self._services = services
        self._log = services.work.log
        self._cases = cases
        self._criteria = criteria
        self.after = after
        self.position = until
        self.room = room
        self._last = last
        self._cascade = Cascade() if cases.is_cascade else None
        self._totals = _Totals()

    async def pages(self) -> AsyncGenerator[Sequence[WhatIfLine]]:
        """Yield lines as they come: verdicts, progress about once a second, and finally the totals.

        If the answer ends early, its last line is the failure.
        """
        reported_at = time.monotonic()
        try:
            async with aclosing(self._decided()) as pages:
                async for page, position in pages:
                    lines: list[WhatIfLine] = []
                    for case, verdict in page:
                        self._totals.count(case.record.run.requested_agent_id, verdict)
                        if not self._criteria.only or verdict.verdict in self._criteria.only:
                            lines.append(_verdict_view(case, verdict))
                    if time.monotonic() - reported_at >= PROGRESS_SECONDS:
                        reported_at = time.monotonic()
                        count = self._totals.verdicts.total()
                        lines.append(WhatIfProgressView.of(position, self.position, count))
                    yield lines
                    if self._services.closing():
                        text = "the server is stopping; retry in a moment"
                        yield [WhatIfFailureView.of(text)]
                        return
        except (QueryError, CascadeTooLargeError) as error:
            yield [WhatIfFailureView.of(str(error))]
            return
        yield [self._totals.view(self.after, self.position)]

    async def _decided(self) -> AsyncGenerator[tuple[_Decided, int]]:
        after = self.after
        types = (*_REQUESTS, ChildReleased.__name__) if self._cascade is not None else _REQUESTS
        while after < self._last:
            found = await self._log.read(
                after=after, limit=EVENTS_AT_ONCE, until=self._last, types=types
            )
            page = await self._with_whole_batches(found)
            after = page[-1].envelope.position if len(found) == EVENTS_AT_ONCE else self._last
            async for decided in self._decide_page(page):
                yield decided, after

    async def _with_whole_batches(self, page: Sequence[RecordedEvent]) -> list[RecordedEvent]:
        """Add the other runs of the batches at both ends of a page: a batch is decided as a
        whole."""
        batches = [
            batch
            for recorded in (*page[:1], *page[-1:])
            if (batch := batch_of(recorded)) is not None
        ]
        streams = [run_stream(run_id) for batch in batches for run_id in batch.run_ids]
        if not streams:
            return list(page)
        found = await self._log.read_streams(streams, types=_REQUESTS, until=self.position)
        by_position = {recorded.envelope.position: recorded for recorded in (*page, *found)}
        return [by_position[position] for position in sorted(by_position)]

    async def _decide_page(self, page: Sequence[RecordedEvent]) -> AsyncGenerator[_Decided]:
        cases = await self._cases.read(
            [recorded for recorded in page if recorded.envelope.type in _REQUESTS]
        )
        groups = [*_groups(page)]
        total_bytes = sum(ref.bytes for case in cases.values() for ref in case.refs)
        parts = [groups] if total_bytes <= TEXT_BYTES_AT_ONCE else [[group] for group in groups]
        for part in parts:
            found = (cases.get(recorded.envelope.position) for group in part for recorded in group)
            texts = await self._cases.texts(case for case in found if case is not None)
            began = time.monotonic()
            done: _Decided = []
            for group in part:
                event = group[0].event
                if isinstance(event, ChildReleased):
                    key = session_key_of(group[0].stream)
                    if self._cascade is not None and key is not None:
                        self._cascade.release(key, event.run_id)
                    continue
                done += self._decide_group(
                    [cases[recorded.envelope.position] for recorded in group], texts
                )
                if time.monotonic() - began >= SECONDS_AT_ONCE:
                    await asyncio.sleep(0)
                    began = time.monotonic()
            yield done

    def _decide_group(self, group: Sequence[WhatIfCase], texts: Mapping[UUID, str]) -> _Decided:
        decided = decide_batch_again([(case.record, self._decide(case, texts)) for case in group])
        done = []
        for case, result in zip(group, decided, strict=True):
            if self._cascade is not None:
                self._cascade.note(case.record, result)
            if case.position > self.after and self._criteria.matches(case.record.run):
                done.append((case, result.verdict))
        return done

    def _decide(self, case: WhatIfCase, texts: Mapping[UUID, str]) -> DecidedAgain:
        if case.question is None:
            return DecidedAgain(case.verdict)
        unknown: tuple[str, ...] = ()
        if self._cascade is None:
            decided = decide_again(case.question, texts)
        else:
            decided = self._cascade.decide(case.question, texts, case.namesakes)
            unknown = self._cascade.unshared(case.record)
        run, name = case.started_run, decided.verdict.verdict
        is_known = decided.planned is not None and decided.scripts is not None
        if run is None or not is_known or name not in ("same", "different-announcement"):
            return decided
        verdict = compare_prompts(case.record, run, case.opened or run, decided, texts)
        if unknown:
            verdict = not_replayable(*unknown)
        return replace(decided, verdict=verdict or decided.verdict)


def _groups(page: Sequence[RecordedEvent]) -> Iterator[list[RecordedEvent]]:
    """Yield events one by one, those of a batch together."""
    group: list[RecordedEvent] = []
    for recorded in page:
        batch = batch_of(recorded)
        last = batch_of(group[-1]) if group else None
        if group and (batch is None or last is None or batch.batch_id != last.batch_id):
            yield group
            group = []
        group.append(recorded)
    if group:
        yield group


def _verdict_view(case: WhatIfCase, verdict: Verdict) -> WhatIfVerdictView:
    record, run = case.record, case.record.run
    return WhatIfVerdictView.from_source(
        verdict,
        run_id=run.run_id,
        position=case.position,
        kind="spawn" if run.continues is None else "message",
        agent_id=run.requested_agent_id,
        label=run.label,
        requester_session_key=run.requester.session_key,
        config_revision=record.config_revision,
    )
