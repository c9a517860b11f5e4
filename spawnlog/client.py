"""The client that blocks: every operation of a server as a method."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar
from uuid import UUID

import httpx2

from spawnlog.core.answer import LINE_BYTES_MAX, AnswerContent, Reply, ServerAnswer, require_success
from spawnlog.core.connections import Connections
from spawnlog.core.errors import InvalidSetting, ServerUnreachable, SpawnlogError
from spawnlog.core.feed import ABSENT_SECONDS_MAX, Feed
from spawnlog.core.lines import LineReader
from spawnlog.core.location import ServerAddress, locate_server
from spawnlog.core.request import ItemT, LinesRequest, PageRequest, PageT, Request
from spawnlog.core.retries import NO_RETRIES, Errand, Pause, RetryLimits, attempts, exchange
from spawnlog.core.wire import ANSWER_SECONDS, FAILURES, Wire
from spawnlog.family import Family, FollowedEvents, SpawnedRun
from spawnlog.operations import control as of_control
from spawnlog.operations import external_runs as of_external_runs
from spawnlog.operations import log as of_log
from spawnlog.operations import runs as of_runs
from spawnlog.operations import server as of_server
from spawnlog.operations import sessions as of_sessions
from spawnlog.operations.bodies import RequesterObject

if TYPE_CHECKING:
    from application.queries.views.event import EventView

P = ParamSpec("P")
T = TypeVar("T")


def _answered(
    operation: Callable[P, Request[T]],
) -> Callable[Concatenate[Client, P], T]:
    @functools.wraps(operation)
    def method(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.answer(operation(*args, **kwargs)).value

    return method


def _paged(
    operation: Callable[P, PageRequest[PageT, ItemT]],
) -> Callable[Concatenate[Client, P], Iterator[ItemT]]:
    @functools.wraps(operation)
    def method(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[ItemT]:
        return self.items(operation(*args, **kwargs))

    return method


def _lined(
    operation: Callable[P, LinesRequest[T]],
) -> Callable[Concatenate[Client, P], Iterator[T]]:
    @functools.wraps(operation)
    def method(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        return self.lines(operation(*args, **kwargs))

    return method


class Client:
    """Speaks to one server, and blocks until it has answered. Use it in a `with`, or `close` it; it
    may be shared by threads, and has none of its own.

    Without a `url` it is that of SPAWNLOG_URL, else of the server that runs on the data directory
    (`data_dir`, else SPAWNLOG_DATA_DIR, else this user's), else port 8700 of this machine. The
    token is SPAWNLOG_TOKEN, else that of the data directory, which only that server and this
    machine are told. An `address` is taken as it is. Every method raises a SpawnlogError for all
    that is no answer.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        data_dir: Path | None = None,
        address: ServerAddress | None = None,
        retries: RetryLimits | None = None,
        answer_seconds: float = ANSWER_SECONDS,
        agent: str = "spawnlog-python",
    ) -> None:
        self.address = address or locate_server(url, data_dir, os.environ, token=token)
        self.retries = retries or RetryLimits()
        self._wire = Wire(self.address, answer_seconds, agent)
        self._http = self._wire.opened(httpx2.Client)
        self._connections = Connections(self.address.url) if self._wire.is_plain else None

    @classmethod
    def from_environment(cls, *, retries: RetryLimits | None = None) -> Self:
        """A client of the server that SPAWNLOG_URL, SPAWNLOG_TOKEN and SPAWNLOG_DATA_DIR name."""
        return cls(retries=retries)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.address.url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()
        if self._connections is not None:
            self._connections.close()

    def answer(self, request: Request[T]) -> ServerAnswer[T]:
        """The answer to a request of `spawnlog.operations`, with the position at which it is
        true; what the methods below give is its value."""
        return self.perform(exchange(request, self.retries))

    def items(self, request: PageRequest[Any, ItemT]) -> Iterator[ItemT]:
        """The items of a list one after the other, from this page on."""
        following: PageRequest[Any, ItemT] | None = request
        while following is not None:
            page = self.answer(following)
            yield from following.items(page.value)
            following = following.following(page.value, page.position)

    def lines(self, request: LinesRequest[T]) -> Iterator[T]:
        """The lines of an answer as they come. StreamCutShort when it ends before it is whole."""
        reader = LineReader(request)
        with self.opened(request, self.retries) as response:
            for chunk in response.iter_bytes():
                yield from reader.feed(chunk)
        yield from reader.end()

    def perform(self, errand: Errand[T]) -> T:
        """Do an errand: the steps that it yields, until it is over."""
        return _do(errand, self._reply)

    def feed_events(self, feed: Feed[T]) -> Generator[T]:
        """The events of a feed, over as many connections as that takes."""
        while True:
            request = feed.request()
            try:
                with self.opened(request) as response:
                    feed.opened(response.headers)
                    for message in httpx2.EventSource(response, LINE_BYTES_MAX):
                        event = feed.take(message.event, message.id, message.data)
                        if event is not None:
                            yield event
                failure: SpawnlogError = ServerUnreachable(f"{self.address.url} ended the stream")
            except SpawnlogError as lost:
                failure = lost
            time.sleep(feed.pause_seconds(failure))

    @contextmanager
    def opened(
        self, request: Request[Any], limits: RetryLimits = NO_RETRIES
    ) -> Iterator[httpx2.Response]:
        """An answer of success, to be read while it comes."""
        response: httpx2.Response | None = None

        def reply(asked: Request[Any]) -> Reply:
            nonlocal response
            with self._failures(asked):
                response = self._http.send(self._wire.request(asked, streams=True), stream=True)
                if response.is_success:
                    return Reply(response.status_code, response.headers, b"")
                try:
                    return Reply(response.status_code, response.headers, _content(response))
                finally:
                    response.close()

        try:
            _do(attempts(request, limits, require_success), reply)
            assert response is not None
            with self._failures(request):
                yield response
        finally:
            if response is not None:
                response.close()

    def _reply(self, request: Request[Any]) -> Reply:
        with self._failures(request):
            if self._connections is not None:
                seconds = self._wire.silence_seconds_max(request)
                return self._connections.reply(self._wire.message(request), seconds)
            response = self._http.send(self._wire.request(request), stream=True)
            try:
                return Reply(response.status_code, response.headers, _content(response))
            finally:
                response.close()

    @contextmanager
    def _failures(self, request: Request[Any]) -> Iterator[None]:
        if self._http.is_closed:
            raise InvalidSetting("this client is closed: make another one")
        try:
            yield
        except FAILURES as error:
            raise self._wire.failure(error, request) from None

    def follow_events(
        self,
        *,
        after: int | None = None,
        types: Sequence[str] = (),
        run_id: str | UUID | None = None,
        tree: str | None = None,
        actor: str | None = None,
        absent_seconds_max: float = ABSENT_SECONDS_MAX,
    ) -> FollowedEvents[EventView]:
        """The events as they are recorded, each once and in order, without end: behind `after`,
        else from now on. A lost connection is taken up again where it was; when the server stays
        away for `absent_seconds_max`, the reason is raised."""
        request = of_log.stream_events(
            after=after, types=types, run_id=run_id, tree=tree, actor=actor
        )
        return FollowedEvents(self, Feed(request, absent_seconds_max=absent_seconds_max))

    def session(self, session: str | RequesterObject, *, stop_on_error: bool = False) -> Family:
        """A session whose family is spawned in a `with`: `family.spawn("task")`. Leaving it leaves
        the runs as they are, unless it is left by an exception and `stop_on_error` was said."""
        return Family(self, session, stop_on_error=stop_on_error)

    def run(self, run_id: str) -> SpawnedRun:
        """A run that is there already, to wait for it or to speak to it."""
        return SpawnedRun(self, run_id)

    what_if = _lined(of_log.what_if)
    spawn = _answered(of_runs.spawn)
    respawn = _answered(of_runs.respawn)
    list_runs = _answered(of_runs.list_runs)
    get_run = _answered(of_runs.get_run)
    list_run_events = _answered(of_runs.list_run_events)
    get_run_prompt = _answered(of_runs.get_run_prompt)
    get_run_transcript = _answered(of_runs.get_run_transcript)
    explain_run = _answered(of_runs.explain_run)
    get_run_history = _answered(of_runs.get_run_history)
    compare_runs = _answered(of_runs.compare_runs)
    get_diff = _answered(of_runs.get_diff)
    stop_run = _answered(of_control.stop_run)
    stop_session = _answered(of_control.stop_session)
    send_message = _answered(of_control.send_message)
    write_preamble = _answered(of_control.write_preamble)
    clear_preamble = _answered(of_control.clear_preamble)
    yield_session = _answered(of_control.yield_session)
    claim_run = _answered(of_external_runs.claim_run)
    prolong_claim = _answered(of_external_runs.prolong_claim)
    report_transcript = _answered(of_external_runs.report_transcript)
    end_run = _answered(of_external_runs.end_run)
    get_session = _answered(of_sessions.get_session)
    get_session_tree = _answered(of_sessions.get_session_tree)
    list_announcements = _answered(of_sessions.list_announcements)
    acknowledge_announcement = _answered(of_sessions.acknowledge_announcement)
    list_ledger = _answered(of_sessions.list_ledger)
    redrive_announcement = _answered(of_sessions.redrive_announcement)
    provide_transcript = _answered(of_sessions.provide_transcript)
    get_run_shared_context = _answered(of_sessions.get_run_shared_context)
    get_shared_context = _answered(of_sessions.get_shared_context)
    patch_shared_context = _answered(of_sessions.patch_shared_context)
    list_events = _answered(of_log.list_events)
    count_events = _answered(of_log.count_events)
    list_timeline = _answered(of_log.list_timeline)
    get_moment = _answered(of_log.get_moment)
    find_events = _answered(of_log.find_events)
    get_log_head = _answered(of_log.get_log_head)
    start_verification = _answered(of_log.start_verification)
    stop_verification = _answered(of_log.stop_verification)
    list_agents = _answered(of_server.list_agents)
    list_lanes = _answered(of_server.list_lanes)
    list_revisions = _answered(of_server.list_revisions)
    get_revision = _answered(of_server.get_revision)
    get_me = _answered(of_server.get_me)
    make_page_code = _answered(of_server.make_page_code)
    trade_page_code = _answered(of_server.trade_page_code)
    revoke_page_token = _answered(of_server.revoke_page_token)
    get_health = _answered(of_server.get_health)
    get_metrics = _answered(of_server.get_metrics)
    get_readiness = _answered(of_server.get_readiness)

    # Item by item, over as many pages as that takes.
    runs = _paged(of_runs.list_runs)
    run_events = _paged(of_runs.list_run_events)
    transcript = _paged(of_runs.get_run_transcript)
    run_history = _paged(of_runs.get_run_history)
    differences = _paged(of_runs.get_diff)
    announcements = _paged(of_sessions.list_announcements)
    ledger = _paged(of_sessions.list_ledger)
    events = _paged(of_log.list_events)
    timeline = _paged(of_log.list_timeline)
    found_events = _paged(of_log.find_events)
    revisions = _paged(of_server.list_revisions)


def _do(errand: Errand[T], reply: Callable[[Request[Any]], Reply]) -> T:
    """Take the steps of an errand, until it is over."""
    try:
        step = next(errand)
        while True:
            if isinstance(step, Pause):
                time.sleep(step.seconds)
                step = next(errand)
                continue
            try:
                said = reply(step)
            except SpawnlogError as error:
                step = errand.throw(error)
            else:
                step = errand.send(said)
    except StopIteration as over:
        return over.value  # type: ignore[no-any-return]


def _content(response: httpx2.Response) -> bytes:
    content = AnswerContent()
    for chunk in response.iter_bytes():
        content.add(chunk)
    return content.whole()
