"""What another configuration would have decided: recorded decisions, decided again in their order.

They are read page by page, so that any length of history takes the same memory, and given out as
they are decided. No script, no runtime and no hook is asked, and nothing is written.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, suppress
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from application.concurrency.bulkhead import BulkheadFull
from application.log.envelope import RecordedEvent
from application.ports.configurations import NothingInForce, PinnedConfiguration, RevisionErased
from application.ports.registry import RunQuery
from application.queries.access import Caller, require_scope
from application.queries.as_of import AsOf, resolve_as_of, resolve_range
from application.queries.changes.json_patch import PatchError, apply_patch
from application.queries.command import USUAL, Command, Option
from application.queries.configuration import revision_on_record
from application.queries.errors import QueryError, invalid_value
from application.queries.operation import operation
from application.queries.revisions import revision_at
from application.queries.runs import run_id_of, visible_run
from application.queries.services import QueryServices
from application.queries.session_reference import resolve_session_key
from application.queries.views.view import Lines
from application.queries.views.what_if import (
    TotalsView,
    WhatIfFailureView,
    WhatIfLine,
    WhatIfProgressView,
    WhatIfTotalsView,
    WhatIfVerdictView,
)
from domain.configuration.configuration import Configuration
from domain.configuration.problems import ConfigurationError, nearest_word
from domain.run.events import (
    AgentOverridden,
    MessageReceived,
    RunStarted,
    SessionCreated,
    SpawnRefused,
    SpawnRequested,
)
from domain.run.state import Run
from domain.session.events import ChildReleased
from domain.session.state import Session
from domain.states import states
from domain.values.agent_id import is_valid_agent_id, normalise_agent_id
from domain.values.body import Body
from domain.values.json_text import compact_json
from domain.values.moments import MOMENT_CHARACTERS_MAX, MOMENT_FORMS
from domain.values.record import ContentRef, run_stream, session_key_of
from domain.values.text import quote_name
from domain.what_if.batch import decide_batch_again
from domain.what_if.cascade import Cascade, CascadeTooLarge
from domain.what_if.decide_again import (
    DecidedAgain,
    Question,
    WholeConfiguration,
    decide_again,
    is_session_needed,
    texts_needed,
    waits_for_needed,
)
from domain.what_if.prompt import compare_prompts, prompt_texts_needed
from domain.what_if.record import (
    DECIDED_IN,
    RecordedDecision,
    RecordedStep,
    recorded_decision,
)
from domain.what_if.unaffected import UnaffectedAgents
from domain.what_if.verdict import SAME, VERDICTS, Verdict, VerdictName, not_replayable

EVENTS_AT_ONCE = 60
"""More than one request for a spawn has tasks, so that a batch is never larger than a page."""
BATCH_POSITIONS_MAX = 500
"""Within so many positions stand the requests of one batch."""
SECONDS_AT_ONCE = 0.005
"""For so long decisions are made before others are served again."""
TEXT_BYTES_AT_ONCE = 1024 * 1024
"""Of so many bytes texts are had at once, and of one decision or batch all that it takes."""
PROGRESS_SECONDS = 1.0
AT_ONCE_MAX = 2
"""So many questions are answered at once by one server: each takes a processor."""
REVISIONS_REMEMBERED_MAX = 100
NAMED_RUNS_MAX = 200
SOURCE = "the configuration"
AGENTS_COUNTED_MAX = 1_000
OTHER_AGENTS = "(others)"

_REQUESTS = (SpawnRequested.__name__, MessageReceived.__name__)
_DECIDED_BEHIND = tuple(
    one.__name__ for one in DECIDED_IN if one not in (SpawnRequested, MessageReceived)
)
_ANSWERED_BY = tuple(one.__name__ for one in (AgentOverridden, SessionCreated, SpawnRefused))


CONFIG_CHARACTERS_MAX = 512 * 1024
NAME_CHARACTERS_MAX = 4096
PATCH_OPERATIONS_MAX = 1_000
AGENTS_MAX = 100
_Moment = Annotated[str | None, Field(max_length=MOMENT_CHARACTERS_MAX)]
_Name = Annotated[str | None, Field(max_length=2048)]


class WhatIfFilter(Body):
    """Which decisions: of one run, of the tree below a root session, of one requester, for any of
    these agents. With `cascade` the others are decided too, and not given out."""

    run_id: _Name = None
    tree: _Name = None
    requester: _Name = None
    agent_ids: Annotated[list[str], Field(alias="agentId", max_length=AGENTS_MAX)] = Field(
        default_factory=list
    )


class WhatIfBody(Body):
    """One of `config`, `configText` (JSON5) and `patch` (RFC 6902, of the revision that each
    decision was made under). `configName` is what `configText` is called where something is wrong
    in it: the name of its file. `from` and `to` are as-ofs. `only` are the verdicts that are given
    out, all when it is empty. `cascade` counts as if what is newly refused had never run, `prompts`
    composes the prompts again."""

    config: dict[str, Any] | None = None
    config_text: Annotated[str | None, Field(max_length=CONFIG_CHARACTERS_MAX)] = None
    config_name: Annotated[str | None, Field(min_length=1, max_length=NAME_CHARACTERS_MAX)] = None
    patch: Annotated[list[dict[str, Any]] | None, Field(max_length=PATCH_OPERATIONS_MAX)] = None
    begin: Annotated[_Moment, Field(alias="from")] = None
    end: Annotated[_Moment, Field(alias="to")] = None
    filter: WhatIfFilter = Field(default_factory=WhatIfFilter)
    only: list[VerdictName] = Field(default_factory=list, max_length=20)
    cascade: bool = False
    prompts: bool = False


@dataclass(frozen=True, slots=True)
class _Filter:
    run_id: UUID | None
    tree: str | None
    requester: str | None
    agent_ids: frozenset[str]

    def takes(self, run: Run) -> bool:
        if self.run_id is not None and run.run_id != self.run_id:
            return False
        if self.tree is not None and run.requester.root_session_key != self.tree:
            return False
        if self.requester is not None and run.requester.session_key != self.requester:
            return False
        return not self.agent_ids or run.requested_agent_id in self.agent_ids


@dataclass(slots=True)
class _Candidates:
    """The configuration to decide under, for each revision that something was decided under."""

    services: QueryServices
    whole: WholeConfiguration | None
    patch: Sequence[Mapping[str, Any]] | None
    _pinned: dict[int, WholeConfiguration] = field(default_factory=dict)
    _patched: dict[int, WholeConfiguration] = field(default_factory=dict)

    async def then(self, revision: int) -> WholeConfiguration:
        """What was pinned. `RevisionErased` and `ConfigurationError` when it cannot be read."""
        known = self._pinned.get(revision)
        if known is None:
            pinned = await revision_on_record(self.services.work, revision)
            known = WholeConfiguration(pinned.configuration, pinned.redacted)
            _remember(self._pinned, revision, known)
        return known

    async def now(self, revision: int) -> WholeConfiguration:
        """What is to be decided under in its place. `RevisionErased`; `QueryError` where the patch
        does not fit the revision, or makes no configuration of it."""
        if self.whole is not None:
            return self.whole
        known = self._patched.get(revision)
        if known is None:
            pinned = await revision_on_record(self.services.work, revision)
            known = _patched(self.services, pinned, self.patch or [])
            _remember(self._patched, revision, known)
        return known


def _remember(
    known: dict[int, WholeConfiguration], revision: int, whole: WholeConfiguration
) -> None:
    known[revision] = whole
    while len(known) > REVISIONS_REMEMBERED_MAX:
        del known[next(iter(known))]


def _patched(
    services: QueryServices, pinned: PinnedConfiguration, patch: Sequence[Mapping[str, Any]]
) -> WholeConfiguration:
    try:
        values = apply_patch(list(patch), pinned.redacted)
    except PatchError as error:
        raise QueryError(
            "invalid_request",
            f"the patch does not fit configuration revision {pinned.revision}: {error}",
        ) from None
    return _read(services, compact_json(values), "/patch")


def _read(
    services: QueryServices, text: str, pointer: str, name: str | None = None
) -> WholeConfiguration:
    """What a text says. Without a name it is not the caller's, who is told of no line of it."""
    try:
        return WholeConfiguration(*services.candidates.read(text, name or SOURCE))
    except ConfigurationError as error:
        why = "\n".join(one.by_pointer() for one in error.problems) if name is None else error
        raise QueryError(
            "invalid_request",
            f"the configuration cannot be used: {why}",
            errors=[
                {"pointer": f"{pointer}{one.pointer}", "detail": one.message}
                for one in error.problems
            ],
        ) from None


FAILING = tuple(one for one in VERDICTS if one != SAME.verdict)
"""Verdicts that `--fail-on` may name."""


@operation(
    "POST",
    "/v1/what-if",
    name="whatIf",
    tag="log",
    scope="read",
    summary="What another configuration would have decided",
    description=(
        "Decides recorded spawns and messages again under another configuration, each from the"
        " facts that were recorded for it: no script, runtime or hook is asked, nothing is looked"
        " up and nothing is written. A line of JSON for each decision with its verdict, one about"
        " once a second with how far it is, the totals last; an answer that ends with `failure`,"
        " or without totals, is not whole. It goes over the whole log, so it needs a token for"
        ' sessions "*", and scope `content` for `prompts`.'
    ),
    errors=("not_found", "what_if_busy"),
    answer=WhatIfLine,
    lines=True,
    body_required=True,
    command=Command(
        "what-if",
        by_hand=True,
        options={
            "config": None,
            "configText": None,
            "configName": None,
            "patch": None,
            # The command asks for all that differ, and fails for some of them.
            "only": Option(
                flag="--fail-on",
                offers=FAILING,
                metavar="VERDICT",
                help="Exit 1 when there is such a verdict:"
                f" {', '.join(FAILING[:-1])} or {FAILING[-1]}. May be repeated.",
            ),
            "from": Option(flag="--since", metavar="TIME", help=f"From then on: {MOMENT_FORMS}."),
            "to": Option(flag="--until", metavar="TIME", help="Up to then. Default: now."),
            "filter.runId": USUAL["runId"],
            "filter.tree": USUAL["tree"],
            "filter.requester": Option(
                metavar="KEY", means="requester", help="Of what this session asked for."
            ),
            "filter.agentId": Option(
                flag="--agent", metavar="ID", help="For this agent; may be repeated."
            ),
            "cascade": Option(help="Count as if what is newly refused had never run."),
            "prompts": Option(help="Compose prompts again and compare them."),
        },
    ),
)
async def what_if(services: QueryServices, caller: Caller, body: WhatIfBody) -> "WhatIfAnswer":
    """Decide the decisions of a range again.

    Raises:
        QueryError: Something is wrong with the request, or too many such questions are answered.
    """
    if not caller.sees_everything:
        raise QueryError(
            "not_permitted", 'what-if goes over the whole log: that needs a token for sessions "*"'
        )
    if body.prompts:
        require_scope(caller, "content")
    given = [one for one in (body.config, body.config_text, body.patch) if one is not None]
    if len(given) != 1:
        raise QueryError(
            "invalid_request", "give one of config, configText and patch: what is to be tried"
        )
    if body.config_name is not None and body.config_text is None:
        raise invalid_value("/configName", "is the name of a configText; leave it out")
    whole = None
    if body.config_text is not None:
        name = body.config_name or SOURCE
        whole = _read(services, body.config_text, "/configText", name)
    elif body.config is not None:
        whole = _read(services, compact_json(body.config), "/config")
    candidates = _Candidates(services, whole, body.patch)
    first, last_moment = await resolve_range(services, caller, body.begin, body.end)
    until, after = last_moment.position, _after(body.begin, first)
    if body.patch is not None:
        await _must_fit_in_force(services, candidates, until)
    wanted, tree, requester = body.filter, None, None
    if wanted.tree is not None:
        session = await _session_on_record(services, caller, wanted.tree, "/filter/tree", until)
        tree = session.session_key
        if session.root_session_key != tree:
            text = f"is below another session: the root of its tree is {session.root_session_key}"
            raise invalid_value("/filter/tree", text)
    if wanted.requester is not None:
        pointer = "/filter/requester"
        session = await _session_on_record(services, caller, wanted.requester, pointer, until)
        requester = session.session_key
    run_id, last = None, until
    if wanted.run_id is not None:
        moment = await resolve_as_of(services, caller, None)
        run = await visible_run(services, caller, wanted.run_id, moment)
        run_id = run_id_of(wanted.run_id)
        # Only a cascade depends on what was decided before.
        if not body.cascade:
            after = max(after, run.created_position - 1)
        last = min(until, run.created_position + BATCH_POSITIONS_MAX)
    agent_ids = await _agents_on_record(services, candidates, wanted.agent_ids, until)
    room = AsyncExitStack()
    try:
        await room.enter_async_context(services.processor_room.of("what-if"))
    except BulkheadFull:
        raise QueryError(
            "what_if_busy",
            f"this server answers {AT_ONCE_MAX} such questions at once; ask again when one of them"
            " is done",
        ) from None
    return WhatIfAnswer(
        services,
        candidates,
        _Filter(run_id, tree, requester, agent_ids),
        body,
        after=after,
        until=until,
        last=last,
        room=room,
    )


async def _must_fit_in_force(
    services: QueryServices, candidates: _Candidates, position: int
) -> None:
    """What does not even fit the revision in force was not meant."""
    try:
        in_force = await services.work.configurations.in_force(position)
    except (NothingInForce, RevisionErased, ConfigurationError):
        # There is nothing to try it on; each decision says what it was made under.
        return
    await candidates.now(in_force.revision)


async def _session_on_record(
    services: QueryServices, caller: Caller, spelling: str, pointer: str, until: int
) -> Session:
    """A session that a filter names. What is none would take nothing, and a build be green."""
    key = await resolve_session_key(services, caller, spelling, pointer=pointer, at=until)
    session = await services.work.registry.session(key, at=until)
    if session is None:
        text = f"{pointer}: there is no session {quote_name(key)} on record"
        raise QueryError("not_found", text, position=until)
    return session


async def _agents_on_record(
    services: QueryServices, candidates: _Candidates, given: Sequence[str], until: int
) -> frozenset[str]:
    """The agents that a filter names. `QueryError` for one that neither the configuration to be
    tried nor any on record has, and that no run was asked for with."""
    if not given:
        return frozenset()
    asked: dict[str, int] = {}
    for index, one in enumerate(given):
        if not is_valid_agent_id(one):
            raise invalid_value(
                f"/filter/agentId/{index}", "is no agent id: it must match [a-z0-9][a-z0-9_-]{0,63}"
            )
        asked.setdefault(normalise_agent_id(one), index)
    known: set[str] = set()
    async with aclosing(_configurations(services, candidates, until)) as configurations:
        async for configuration in configurations:
            known.update(configuration.agent_ids())
            if asked.keys() <= known:
                return frozenset(asked)
    for one in asked.keys() - known:
        query = RunQuery.where(agent_id=one)
        if await services.work.registry.runs(query, at=until, limit=1):
            continue
        nearest = nearest_word(one, sorted(known))
        hint = f'; did you mean "{nearest}"?' if nearest is not None else ""
        text = f'no configuration has an agent "{one}", and nobody asked for it{hint}'
        raise invalid_value(f"/filter/agentId/{asked[one]}", text)
    return frozenset(asked)


async def _configurations(
    services: QueryServices, candidates: _Candidates, until: int
) -> AsyncGenerator[Configuration]:
    """The one that is to be tried, as far as it is one, and those that were in force, from the
    last one back. Without those that cannot be read."""
    revision = await revision_at(services.work.log, until)
    if candidates.whole is not None:
        yield candidates.whole.configuration
    elif revision > 0:
        with suppress(RevisionErased, ConfigurationError):
            yield (await candidates.now(revision)).configuration
    while revision > 0:
        with suppress(RevisionErased, ConfigurationError):
            yield (await candidates.then(revision)).configuration
        revision -= 1


def _after(since: str | None, moment: AsOf | None) -> int:
    if since is None or moment is None:
        return 0
    # A position is the first one to be looked at; what was recorded by an instant is before it.
    return max(0, moment.position - 1) if since.startswith(("pos:", "run:")) else moment.position


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
            decisions=sum(self.verdicts.values()),
            by_verdict={name: self.verdicts[name] for name in VERDICTS},
            by_agent={agent: dict(those) for agent, those in sorted(self.agents.items())},
            by_rule={rule: dict(those) for rule, those in sorted(self.rules.items())},
        )
        return WhatIfTotalsView(totals=totals)


@dataclass(frozen=True, slots=True)
class _Item:
    """A decision of a page: what was recorded of it, and what of the record it is decided from.
    `namesakes` are, for each name in it, the runs that other sessions of that name began with."""

    position: int
    record: RecordedDecision
    question: Question | None
    verdict: Verdict | None = None
    started_run: Run | None = None
    opened: Run | None = None
    namesakes: Mapping[str, Sequence[UUID]] = field(default_factory=dict)


class WhatIfAnswer(Lines):
    """The lines of the answer, as they are made. It is gone through once."""

    def __init__(
        self,
        services: QueryServices,
        candidates: _Candidates,
        criteria: _Filter,
        request: WhatIfBody,
        *,
        after: int,
        until: int,
        last: int,
        room: AsyncExitStack,
    ) -> None:
        self._services = services
        self._candidates = candidates
        self._criteria = criteria
        self._request = request
        self.after = after
        self.position = until
        self.room = room
        self._last = last
        self._cascade = Cascade() if request.cascade else None
        self._unaffected: dict[int, UnaffectedAgents | None] = {}
        self._totals = _Totals()

    async def pages(self) -> AsyncGenerator[Sequence[WhatIfLine]]:
        """A line for each verdict that is wanted, how far it is about once a second, and the totals
        at the end, or why it goes no further; as many at a time as come at once."""
        told = time.monotonic()
        try:
            async with aclosing(self._decided()) as pages:
                async for page, position in pages:
                    lines: list[WhatIfLine] = []
                    for item, decided in page:
                        self._totals.count(item.record.run.requested_agent_id, decided)
                        if not self._request.only or decided.verdict in self._request.only:
                            lines.append(_verdict_view(item, decided))
                    if time.monotonic() - told >= PROGRESS_SECONDS:
                        told = time.monotonic()
                        count = self._totals.verdicts.total()
                        lines.append(WhatIfProgressView.of(position, self.position, count))
                    yield lines
                    if self._services.closing():
                        text = "the service is stopping; ask again in a moment"
                        yield [WhatIfFailureView.of(text)]
                        return
        except (QueryError, CascadeTooLarge) as error:
            yield [WhatIfFailureView.of(str(error))]
            return
        yield [self._totals.view(self.after, self.position)]

    async def _decided(self) -> AsyncGenerator[tuple[list[tuple[_Item, Verdict]], int]]:
        after = self.after
        types = (*_REQUESTS, ChildReleased.__name__) if self._cascade is not None else _REQUESTS
        while after < self._last:
            found = await self._services.work.log.read(
                after=after, limit=EVENTS_AT_ONCE, until=self._last, types=types
            )
            page = _whole_batches(found) if len(found) == EVENTS_AT_ONCE else list(found)
            if after == self.after:
                page = [*await self._beginning(page), *page]
            after = page[-1].envelope.position if len(found) == EVENTS_AT_ONCE else self._last
            async for decided in self._decide_page(page):
                yield decided, after

    async def _beginning(self, page: Sequence[RecordedEvent]) -> list[RecordedEvent]:
        """What stands before the range of the batch that it begins in: it is decided with it."""
        batch_id = _batch_id(page[0]) if page else None
        if batch_id is None:
            return []
        found = await self._services.work.log.read(
            after=max(0, self.after - BATCH_POSITIONS_MAX),
            limit=BATCH_POSITIONS_MAX,
            until=self.after,
            types=_REQUESTS,
        )
        return [one for one in found if _batch_id(one) == batch_id]

    async def _decide_page(
        self, page: Sequence[RecordedEvent]
    ) -> AsyncGenerator[list[tuple[_Item, Verdict]]]:
        requests = [one for one in page if one.envelope.type in _REQUESTS]
        items = {one.position: one for one in await self._items(requests)}
        for part in _in_parts(_groups(page), items):
            texts = await self._texts(
                items[one.envelope.position]
                for group in part
                for one in group
                if one.envelope.position in items
            )
            began = time.monotonic()
            done: list[tuple[_Item, Verdict]] = []
            for group in part:
                event = group[0].event
                if isinstance(event, ChildReleased):
                    key = session_key_of(group[0].envelope.stream)
                    if self._cascade is not None and key is not None:
                        self._cascade.release(key, event.run_id)
                    continue
                done += self._decide_group([items[one.envelope.position] for one in group], texts)
                if time.monotonic() - began >= SECONDS_AT_ONCE:
                    await asyncio.sleep(0)
                    began = time.monotonic()
            yield done

    def _decide_group(
        self, members: Sequence[_Item], texts: Mapping[UUID, str]
    ) -> list[tuple[_Item, Verdict]]:
        decided = [(item, self._decide(item, texts)) for item in members]
        together = decide_batch_again([(item.record, one) for item, one in decided])
        done = []
        for (item, _), one in zip(decided, together, strict=True):
            if self._cascade is not None:
                self._cascade.note(item.record, one)
            if item.position > self.after and self._criteria.takes(item.record.run):
                done.append((item, one.verdict))
        return done

    def _decide(self, item: _Item, texts: Mapping[UUID, str]) -> DecidedAgain:
        if item.verdict is not None or item.question is None:
            return DecidedAgain(item.verdict or SAME)
        if self._cascade is None:
            return self._with_prompt(item, decide_again(item.question, texts), texts)
        decided = self._cascade.decide(item.question, texts, item.namesakes)
        return self._with_prompt(item, decided, texts)

    def _with_prompt(
        self, item: _Item, decided: DecidedAgain, texts: Mapping[UUID, str]
    ) -> DecidedAgain:
        is_compared = (
            self._request.prompts
            and item.started_run is not None
            and item.record.started is not None
            and decided.planned is not None
            and decided.scripts is not None
            and decided.verdict.verdict in ("same", "different-announcement")
        )
        if not is_compared:
            return decided
        assert item.started_run is not None
        unknown = self._cascade.unshared(item.record) if self._cascade is not None else ()
        if unknown:
            return replace(decided, verdict=not_replayable(*unknown))
        verdict = compare_prompts(
            item.record, item.started_run, item.opened or item.started_run, decided, texts
        )
        return replace(decided, verdict=verdict or decided.verdict)

    # What the decisions of a page are made from.

    async def _items(self, requests: Sequence[RecordedEvent]) -> list[_Item]:
        unaffected = await self._unaffected_in(requests)
        is_known = self._cascade is None and not self._request.prompts
        needed = [one for one in requests if not (is_known and one.envelope.position in unaffected)]
        # A prompt is made from the run as it was, which takes all of its events.
        types = () if self._request.prompts else _DECIDED_BEHIND
        behind = await self._of_streams([one.envelope.stream for one in needed], types)
        others = await self._other_runs(needed)
        items: list[_Item] = []
        for one in requests:
            position, stream = one.envelope.position, one.envelope.stream
            if is_known and position in unaffected:
                items.append(_Item(position, recorded_decision([_step(one)]), None, SAME))
                continue
            # A request is the first event of its run, and at hand already.
            later = (event for event in behind.get(stream, ()) if event.envelope.version > 1)
            events = [one, *later]
            items.append(await self._item(one, events, others, is_same=position in unaffected))
        return items

    async def _unaffected_in(self, requests: Sequence[RecordedEvent]) -> set[int]:
        """The positions of those that are known to be decided as they were; of a batch all or
        none."""
        compared = [(one, await self._unaffected_under(_revision_of(one))) for one in requests]
        with_scripts = {
            one.envelope.stream
            for one, unaffected in compared
            if unaffected is not None and unaffected.has_scripts(_request_of(one))
        }
        answers = await self._of_streams(with_scripts, _ANSWERED_BY)
        found, batches_left = set[int](), set[UUID | None]()
        for one, unaffected in compared:
            request, stream = _request_of(one), one.envelope.stream
            # Before scripts have run nobody knows whom they name.
            is_open = stream in with_scripts and stream not in answers
            agent_id = _named_agent(answers.get(stream, ()))
            if unaffected is None or is_open or not unaffected.is_unaffected(request, agent_id):
                batches_left.add(_batch_id(one))
            else:
                found.add(one.envelope.position)
        together = {one.envelope.position for one, _ in compared if _batch_id(one) in batches_left}
        alone = {one.envelope.position for one, _ in compared if _batch_id(one) is None}
        return found - (together - alone)

    async def _of_streams(
        self, streams: Collection[str], types: Sequence[str] = ()
    ) -> dict[str, list[RecordedEvent]]:
        """The events of streams, up to the last position that is looked at."""
        found: dict[str, list[RecordedEvent]] = {}
        if not streams:
            return found
        log = self._services.work.log
        for one in await log.read_streams(list(streams), types=types, until=self.position):
            found.setdefault(one.envelope.stream, []).append(one)
        return found

    async def _other_runs(
        self, requests: Sequence[RecordedEvent]
    ) -> dict[str, list[RecordedEvent]]:
        """The events of the runs that messages go on from, and, where prompts are composed, of
        those that their sessions began with; and of those that spawns name which were refused
        before these were looked at."""
        streams: dict[str, None] = {}
        for one in requests:
            if isinstance(one.event, MessageReceived):
                streams[run_stream(one.event.continues)] = None
                if self._request.prompts:
                    streams[run_stream(one.event.opened_by)] = None
            elif isinstance(one.event, SpawnRequested):
                streams |= {run_stream(run_id): None for run_id in waits_for_needed(one.event)}
        return await self._of_streams(list(streams))

    async def _item(
        self,
        request: RecordedEvent,
        events: Sequence[RecordedEvent],
        others: Mapping[str, Sequence[RecordedEvent]],
        *,
        is_same: bool,
    ) -> _Item:
        position, event = request.envelope.position, request.event
        before = opened = None
        if isinstance(event, MessageReceived):
            before = _run_at(others.get(run_stream(event.continues), ()), position - 1)
            started_at = _started_at(events)
            if self._request.prompts and started_at is not None:
                # As it was then: what was attached to it is gone once its session is put away.
                opened = _run_at(others.get(run_stream(event.opened_by), ()), started_at - 1)
        record = recorded_decision([_step(one) for one in events], before=before)
        try:
            question = await self._question(record, is_same)
        except RevisionErased as erased:
            return _Item(position, record, None, not_replayable(str(erased)))
        except ConfigurationError:
            text = f"configuration revision {record.config_revision}: this program cannot read it"
            return _Item(position, record, None, not_replayable(text))
        except QueryError as error:
            # An earlier revision may lack what is to be changed.
            return _Item(position, record, None, not_replayable(error.detail))
        if is_session_needed(question):
            key, registry = record.run.requester.session_key, self._services.work.registry
            question = replace(question, requester=await registry.session(key, at=position))
        if isinstance(event, SpawnRequested):
            named = {
                run_id: _run_at(others.get(run_stream(run_id), ()), position - 1)
                for run_id in waits_for_needed(event)
            }
            waits_for = {run_id: run for run_id, run in named.items() if run is not None}
            question = replace(question, waits_for=waits_for)
        started = _run_at_start(events) if self._request.prompts else None
        namesakes = await self._namesakes(record)
        return _Item(position, record, question, None, started, opened, namesakes)

    async def _namesakes(self, record: RecordedDecision) -> Mapping[str, Sequence[UUID]]:
        """The runs that other sessions began with, of the names in a request. Only a cascade may
        take the one away that was meant."""
        request = record.request
        if self._cascade is None or not isinstance(request, SpawnRequested):
            return {}
        registry, asks = self._services.work.registry, request.requester
        found: dict[str, Sequence[UUID]] = {}
        for one in request.dependencies:
            if one.via == "reference":
                runs = await registry.runs_by_label_prefix(
                    asks.session_key, one.name, limit=NAMED_RUNS_MAX
                )
            else:
                runs = await registry.runs_by_label(
                    asks.root_session_key, [one.name], limit=NAMED_RUNS_MAX
                )
            found[one.name] = [
                run.opened_by or run.run_id
                for run in runs
                if run.continues is not None or run.created_position < record.run.created_position
            ]
        return found

    async def _question(self, record: RecordedDecision, is_same: bool) -> Question:
        revision = record.config_revision
        question = Question(
            record,
            await self._candidates.then(revision),
            await self._candidates.now(revision),
            is_unaffected=is_same,
        )
        if record.announced is None:
            return question
        # Who is told is read when it is announced, and not when it was requested.
        configurations = self._services.work.configurations
        try:
            in_force = (await configurations.in_force(record.announced_position)).revision
        except NothingInForce:
            in_force = revision
        if in_force == revision:
            return replace(question, announced_under=question.then.configuration)
        return replace(
            question,
            announced_under=(await self._candidates.then(in_force)).configuration,
            announced_now=(await self._candidates.now(in_force)).configuration,
        )

    async def _unaffected_under(self, revision: int) -> UnaffectedAgents | None:
        """What is known to be decided as it was, without a look at the decision; None when each has
        to be looked at."""
        if revision not in self._unaffected:
            try:
                then = await self._candidates.then(revision)
                now = await self._candidates.now(revision)
                others = await self._announcing_under()
                known = UnaffectedAgents(then, now, others)
            except (RevisionErased, ConfigurationError, QueryError):
                known = None
            self._unaffected[revision] = known
        return self._unaffected[revision]

    async def _announcing_under(self) -> tuple[Configuration, ...]:
        """Every configuration that a run may have been announced under."""
        current = (await self._services.work.configurations.in_force(self.position)).revision
        if current > REVISIONS_REMEMBERED_MAX:
            raise RevisionErased("too many revisions to compare them all")
        found = [await self._candidates.then(one) for one in range(1, current + 1)]
        return tuple(one.configuration for one in found)

    async def _texts(self, items: Iterable[_Item]) -> Mapping[UUID, str]:
        refs = {ref.id: ref for item in items for ref in _refs_of(item)}
        return await self._services.work.contents.texts(list(refs.values())) if refs else {}


def _refs_of(item: _Item) -> list[ContentRef]:
    """The texts that a decision is made from."""
    if item.question is None:
        return []
    refs = texts_needed(item.question)
    if item.started_run is not None and item.record.started is not None:
        refs += prompt_texts_needed(item.record, item.started_run)
    return refs


def _in_parts(
    groups: Iterable[list[RecordedEvent]], items: Mapping[int, _Item]
) -> Iterator[list[list[RecordedEvent]]]:
    """Groups whose texts are had at once; more texts than that only for one that has them."""
    part: list[list[RecordedEvent]] = []
    total_bytes = 0
    for group in groups:
        found = [items.get(one.envelope.position) for one in group]
        size = sum(ref.bytes for item in found if item is not None for ref in _refs_of(item))
        if part and total_bytes + size > TEXT_BYTES_AT_ONCE:
            yield part
            part, total_bytes = [], 0
        part.append(group)
        total_bytes += size
    if part:
        yield part


def _whole_batches(found: Sequence[RecordedEvent]) -> list[RecordedEvent]:
    """Without the beginning of a batch at its end, unless that is all there is."""
    end = len(found)
    while end and _batch_id(found[end - 1]) is not None:
        if _batch_id(found[end - 1]) != _batch_id(found[-1]):
            break
        end -= 1
    return list(found[:end] or found)


def _batch_id(recorded: RecordedEvent) -> UUID | None:
    event = recorded.event
    if isinstance(event, SpawnRequested) and event.batch is not None:
        return event.batch.batch_id
    return None


def _groups(page: Sequence[RecordedEvent]) -> Iterator[list[RecordedEvent]]:
    """Events one by one, those of a batch together."""
    group: list[RecordedEvent] = []
    for one in page:
        batch_id = _batch_id(one)
        if group and (batch_id is None or batch_id != _batch_id(group[-1])):
            yield group
            group = []
        group.append(one)
    if group:
        yield group


def _named_agent(events: Iterable[RecordedEvent]) -> str | None:
    """The agent that a script put in the place of the requested one."""
    overridden = (one.event for one in events if isinstance(one.event, AgentOverridden))
    return next((one.to_agent_id for one in overridden), None)


def _request_of(recorded: RecordedEvent) -> SpawnRequested | MessageReceived:
    event = recorded.event
    assert isinstance(event, SpawnRequested | MessageReceived)
    return event


def _revision_of(recorded: RecordedEvent) -> int:
    return _request_of(recorded).config_revision


def _step(recorded: RecordedEvent) -> RecordedStep:
    envelope = recorded.envelope
    revision = envelope.provenance.config_revision
    return RecordedStep(envelope.stamp, revision, recorded.event)


def _run_at_start(events: Sequence[RecordedEvent]) -> Run | None:
    """The run as it was when its prompt was composed; None when it never was."""
    started_at = _started_at(events)
    return _run_at(events, started_at - 1) if started_at is not None else None


def _started_at(events: Sequence[RecordedEvent]) -> int | None:
    """Where it is recorded with what prompt the run began; None when it never did."""
    started = (one.envelope.position for one in events if isinstance(one.event, RunStarted))
    return next(started, None)


def _run_at(events: Iterable[RecordedEvent], position: int) -> Run | None:
    """A run as of a position, from its events; None when it was not there."""
    run: Run | None = None
    for step in states(takewhile(lambda one: one.envelope.position <= position, events)):
        run = step.run
    return run


def _verdict_view(item: _Item, verdict: Verdict) -> WhatIfVerdictView:
    record, run = item.record, item.record.run
    return WhatIfVerdictView.from_source(
        verdict,
        run_id=run.run_id,
        position=item.position,
        kind="spawn" if run.continues is None else "message",
        agent_id=run.requested_agent_id,
        label=run.label,
        requester_session_key=run.requester.session_key,
        config_revision=record.config_revision,
    )
