"""`subagents` and `subagents_wait`: read, steer, stop and await the sub-agents of a session."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal
from uuid import UUID

from pydantic import Field

from application.commands.context import CommandContext
from application.commands.control import require_control
from application.commands.messages import MessageBody, send_message
from application.commands.stop import StopBody, stop_run
from application.log.event_log import StoredAnswer
from application.queries.access import require_scope
from application.queries.errors import QueryError
from application.queries.runs import GetRun, GetRunTranscript, get_run, get_run_transcript
from application.queries.views.inbox import AnnouncementView, announcement_views
from application.queries.views.run import RunMetadataView, RunSummary, RunView, run_summaries
from application.queries.views.run_records import TranscriptEntryView
from application.queries.views.view import View
from domain.plan.tools import CONTROL_TOOL
from domain.run.continuation import SteeredTooSoon, SteerTooLong
from domain.run.lifecycle import OVER
from domain.run.state import Run
from infrastructure.contract.subagents import (
    Subagent,
    info_text,
    list_text,
    log_text,
    runtime_text,
)
from infrastructure.inbound.mcp.tools.arguments import TARGET, ToolArguments, number, one_of
from infrastructure.inbound.mcp.tools.call import (
    McpCall,
    ToolAnswer,
    ToolInputError,
    answer_of,
    answered_once,
    members_of,
)
from infrastructure.inbound.mcp.tools.family import (
    awaited_runs,
    find_target,
    inbox_position,
    is_over,
    is_unread,
    newest_of_session,
    reports_behind,
    subagents,
    unread_reports,
    wait_for_runs,
)
from infrastructure.inbound.mcp.tools.offered import tool

LOG_ENTRIES_MAX = 200
LOG_ENTRIES_DEFAULT = 20
RECENT_MINUTES_MAX = 1440
REPLY_SECONDS_DEFAULT = 30.0
REPLY_SECONDS_MAX = 300.0
WAIT_SECONDS_DEFAULT = 45.0
WAIT_SECONDS_MAX = 600.0
TARGETS_MAX = 50
REPORTS_GIVEN_MAX = 50
_ALL = ("all", "*")
_INCLUDE_TOOLS = "includeTools"
"""The name of `tools` in `sessions_history`; models confuse the two."""
_LEAF = "Leaf subagents cannot control other sessions."
_FOREIGN = "Subagents can only control runs spawned from their own session."


class SubagentRow(View):
    """A sub-agent in the list, by its newest run.

    `index` counts through both lists. `runtime` is for people. `pendingDescendants` is the number
    of descendants that are not done.
    """

    index: int
    run_id: UUID
    session_key: str
    label: str
    task: str
    status: str
    pending_descendants: int
    runtime: str
    runtime_ms: int | None
    model: str | None
    total_tokens: int | None
    started_at: str | None
    ended_at: str | None


class SubagentList(View):
    """The sub-agents of a session: active ones, and those that ended recently."""

    status: Literal["ok"]
    action: Literal["list"]
    requester_session_key: str
    caller_session_key: str
    caller_is_subagent: bool
    total: int
    active: list[SubagentRow]
    recent: list[SubagentRow]
    text: str


class SubagentLog(View):
    """The last entries of the transcript of a sub-agent."""

    status: Literal["ok"]
    action: Literal["log"]
    run_id: UUID
    session_key: str
    label: str
    entries: list[TranscriptEntryView]
    text: str


class SubagentInfo(View):
    """All fields of a sub-agent."""

    status: Literal["ok"]
    action: Literal["info"]
    run: RunView | RunMetadataView
    text: str


class ControlAnswer(View):
    """Result of a stop, steer or send.

    `runId` is the run that was stopped, or that continues with the message. `replyText` is its
    answer, if it came in time.
    """

    status: Literal["ok", "done", "accepted", "queued", "timeout", "error", "forbidden",
                    "rate_limited"]  # fmt: skip
    action: str
    target: str | None = None
    run_id: UUID | None = None
    session_key: str | None = None
    label: str | None = None
    mode: str | None = None
    killed: int | None = None
    labels: list[str] | None = None
    cascade_killed: int | None = None
    cascade_labels: list[str] | None = None
    reply_text: str | None = None
    text: str | None = None
    error: str | None = None


class Control(ToolArguments):
    """Arguments of `subagents`."""

    action: str = one_of(
        ("list", "log", "info", "send", "steer", "stop", "kill"), "list", "Action. Default: list."
    )
    target: str = Field("", description=TARGET)
    message: str | None = Field(None, description="For send and steer: text of the message.")
    recent_minutes: int = number(
        30, 1, RECENT_MINUTES_MAX, "For list: include those that ended this recently."
    )
    limit: int = number(LOG_ENTRIES_DEFAULT, 1, LOG_ENTRIES_MAX, "For log: number of entries.")
    tools: bool = Field(False, description="For log: include tool calls.")
    timeout_seconds: float = number(
        REPLY_SECONDS_DEFAULT,
        0,
        REPLY_SECONDS_MAX,
        "For send: maximum time to wait for the answer.",
    )

    @property
    def required_message(self) -> str:
        """Return the message.

        Raises:
            ToolInputError: If it is missing.
        """
        if self.message is None:
            raise ToolInputError("message required")
        return self.message


@tool(
    CONTROL_TOOL,
    title="Manage sub-agents",
    description=(
        "List your sub-agents (list), read the messages (log) or all facts (info) of one, send it"
        " a message (send), replace its current work with a message (steer), or stop it and"
        " everything below it (stop, kill; target all stops every one)."
    ),
    scope="read",
    output=SubagentList | SubagentLog | SubagentInfo | ControlAnswer,
    reads=False,
    destroys=True,
    also_read=(_INCLUDE_TOOLS,),
)
async def control(call: McpCall, arguments: Control) -> ToolAnswer:
    """Implement `subagents`. The default action is list."""
    action = arguments.action.lower()
    match action:
        case "list":
            return await _list(call, arguments)
        case "log":
            return await _log(call, arguments)
        case "info":
            return await _info(call, arguments)
        case "kill" | "stop":
            return await _controlling(call, arguments, action, _stop)
        case "steer":
            return await _controlling(call, arguments, action, _steer)
        case "send":
            return await _controlling(call, arguments, action, _send)
    raise ToolInputError("Unsupported action.")


async def _list(call: McpCall, arguments: Control) -> ToolAnswer:
    require_scope(call.caller, "read")
    minutes = arguments.recent_minutes
    known = await subagents(call, timedelta(minutes=minutes))
    text = list_text(known, f"recent (last {minutes}m):", ellipsis="...")
    rows = [_row(number, subagent) for number, subagent in enumerate(known.numbered, 1)]
    view = SubagentList(
        status="ok",
        action="list",
        requester_session_key=call.session_key,
        caller_session_key=call.session_key,
        caller_is_subagent=call.caller.run_id is not None,
        total=len(rows),
        active=rows[: len(known.active)],
        recent=rows[len(known.active) :],
        text=text,
    )
    return answer_of(view, text)


def _row(number: int, subagent: Subagent) -> SubagentRow:
    run, usage = subagent.run, subagent.run.get("usage") or {}
    took = subagent.runtime_ms
    return SubagentRow(
        index=number,
        run_id=UUID(subagent.run_id),
        session_key=str(run["childSessionKey"]),
        label=subagent.label,
        task=subagent.short_task,
        status=subagent.status,
        pending_descendants=subagent.pending,
        runtime=runtime_text(took),
        runtime_ms=int(took) if took is not None else None,
        model=run.get("model"),
        total_tokens=usage.get("totalTokens"),
        started_at=run.get("startedAt"),
        ended_at=run.get("endedAt"),
    )


async def _log(call: McpCall, arguments: Control) -> ToolAnswer:
    require_scope(call.caller, "content")
    tools = arguments.tools or call.arguments.get(_INCLUDE_TOOLS) is True
    subagent = await find_target(call, arguments.target)
    query = GetRunTranscript(last=arguments.limit, tools=tools)
    answer = await get_run_transcript(call.services, call.caller, subagent.run_id, query)
    entries = answer.view.items
    text = log_text(subagent, [members_of(entry) for entry in entries], arguments.limit)
    view = SubagentLog(
        status="ok",
        action="log",
        run_id=UUID(subagent.run_id),
        session_key=str(subagent.run["childSessionKey"]),
        label=subagent.label,
        entries=entries,
        text=text,
    )
    return answer_of(view, text)


async def _info(call: McpCall, arguments: Control) -> ToolAnswer:
    require_scope(call.caller, "read")
    known = await find_target(call, arguments.target)
    answer = await get_run(call.services, call.caller, known.run_id, GetRun())
    shown = Subagent(members_of(answer.view), known.now, known.pending)
    text = info_text(shown)
    return answer_of(SubagentInfo(status="ok", action="info", run=answer.view, text=text), text)


async def _controlling(
    call: McpCall,
    arguments: Control,
    action: str,
    act: Callable[[McpCall, Control], Awaitable[Mapping[str, Any]]],
) -> ToolAnswer:
    """Call `act`. If the session may not control others, answer in the words of the tool."""
    try:
        await require_control(call.services, call.caller, call.session_key)
        return control_answer(action, await act(call, arguments))
    except QueryError as error:
        if error.code != "not_permitted":
            raise
        text = _LEAF if call.caller.run_id is not None and not call.caller.may("control") else None
        if text is None:
            text = error.detail if error.detail.startswith("Subagents ") else _FOREIGN
        return control_answer(action, {"status": "forbidden", "error": text})


def control_answer(action: str, members: Mapping[str, Any]) -> ToolAnswer:
    """Return the answer of an action without its null members."""
    view = ControlAnswer.model_validate({"action": action, **members})
    answer = answer_of(view)
    return ToolAnswer({name: value for name, value in answer.values.items() if value is not None})


async def _stop(call: McpCall, arguments: Control) -> dict[str, Any]:
    target = arguments.target
    if target in _ALL:
        known = await subagents(call)
        labels: list[str] = []
        for subagent in known.active:
            below = await _active_below(call, subagent)
            if await _stop_one(call, subagent):
                labels.append(subagent.label)
            elif below:
                labels += [_label_of(run) for run in below]
        count = len(labels)
        plural = "" if count == 1 else "s"
        text = f"killed {count} subagent{plural}." if count else "no running subagents to kill."
        return {"status": "ok", "target": "all", "killed": count, "labels": labels, "text": text}
    subagent = await find_target(call, target)
    below = await _active_below(call, subagent)
    killed = await _stop_one(call, subagent)
    facts = {
        "target": target,
        "runId": subagent.run_id,
        "sessionKey": subagent.run["childSessionKey"],
        "label": subagent.label,
    }
    if not killed and not below:
        return {"status": "done", **facts, "text": f"{subagent.label} is already finished."}
    count, plural = len(below), "" if len(below) == 1 else "s"
    more = f" (+ {count} descendant{plural})" if count else ""
    text = f"killed {subagent.label}{more}."
    if not killed:
        text = f"killed {count} descendant{plural} of {subagent.label}."
    labels_below = {"cascadeLabels": [_label_of(run) for run in below]} if below else {}
    return {"status": "ok", **facts, "cascadeKilled": count, **labels_below, "text": text}


async def _active_below(call: McpCall, subagent: Subagent) -> Sequence[Run]:
    """Return the descendants of a sub-agent that are not over."""
    key = str(subagent.run["childSessionKey"])
    return [
        run
        for run in await call.services.work.registry.runs_below(key)
        if run.stage not in OVER or run.is_paused
    ]


async def _stop_one(call: McpCall, subagent: Subagent) -> bool:
    """Stop a sub-agent and all below it. Return True if its own run was active."""
    # Without the idempotency key: the first of several stops would use it up.
    body = StopBody(reason="stopped by its requester")
    answer = await stop_run(call.services, call.caller, subagent.run_id, body, CommandContext())
    return not answer.body["wasOver"]


def _label_of(run: Run) -> str:
    return run.label or str(run.run_id)[:8]


async def _steer(call: McpCall, arguments: Control) -> dict[str, Any]:
    message, own = arguments.required_message, call.caller.run_id
    if own is not None and arguments.target in (str(own), call.session_key):
        return {"status": "forbidden", "error": "Subagents cannot steer themselves."}
    subagent = await find_target(call, arguments.target)
    try:
        answer = await _sent(call, subagent.run_id, message, "steer")
    except SteeredTooSoon as why:
        return {"status": "rate_limited", "error": str(why)}
    except SteerTooLong as why:
        return {"status": "error", "error": str(why)}
    body = answer.body
    label = subagent.label
    facts = {"sessionKey": body["childSessionKey"], "runId": body["runId"], "label": label}
    if answer.kind != "steered":
        return {"status": "done", **facts, "text": f"{label} is already finished."}
    return {"status": "accepted", **facts, "mode": "restart", "text": f"steered {label}."}


async def _send(call: McpCall, arguments: Control) -> dict[str, Any]:
    message = arguments.required_message
    subagent = await find_target(call, arguments.target)
    return await send_and_wait(
        call, subagent.run_id, subagent.label, message, arguments.timeout_seconds
    )


async def _sent(
    call: McpCall, run_id: str, message: str, mode: Literal["send", "steer"]
) -> StoredAnswer:
    body = MessageBody(message=message, mode=mode)
    return await answered_once(
        call, send_message(call.services, call.caller, run_id, body, call.command)
    )


async def send_and_wait(
    call: McpCall, run_id: str, label: str, message: str, seconds: float
) -> dict[str, Any]:
    """Send a message to the session of a run. Return its answer if it comes within `seconds`."""
    if seconds:
        require_scope(call.caller, "read")
    answer = await _sent(call, run_id, message, "send")
    body = answer.body
    if answer.kind in ("forbidden", "error"):
        return {"status": answer.kind, "error": body["text"], "runId": body["runId"]}
    facts = {"runId": body["runId"], "sessionKey": body["childSessionKey"], "label": label}
    if answer.kind == "queued":
        return {"status": "queued", **facts, "text": f"queued behind the active run of {label}."}
    if not seconds:
        return {"status": "accepted", **facts}
    sent = await call.services.work.run(UUID(str(body["runId"])))
    awaited = await wait_for_runs(call, [sent], seconds)
    if awaited.open:
        return {"status": "timeout", **facts, "text": f"{label} is still running."}
    answered = await get_run(call.services, call.caller, str(awaited.over[0].run_id), GetRun())
    run_view = answered.view
    if run_view.outcome != "success":
        return {"status": "error", **facts, "error": run_view.error or str(run_view.outcome)}
    reply = run_view.result_text if isinstance(run_view, RunView) else None
    return {"status": "ok", **facts, **({"replyText": reply} if reply else {})}


class AwaitedRun(View):
    """A sub-agent that is done, with its report.

    `announcement` is null if it reports nothing, or if the token may not read its texts.
    """

    run: RunSummary
    announcement: AnnouncementView | None


class WaitAnswer(View):
    """Result of a wait.

    `status` is `done` if all are done, else `waiting`, and the wait can be repeated. `pending` are
    the sub-agents that continue. If `more` is true there are further reports: pass `after` to the
    next wait.
    """

    status: Literal["done", "waiting"]
    done: list[AwaitedRun]
    pending: list[RunSummary]
    more: bool
    after: int | None
    text: str


class Wait(ToolArguments):
    """Arguments of `subagents_wait`."""

    targets: list[str] = Field([], max_length=TARGETS_MAX, description=TARGET)
    until: str = one_of(("all", "any"), "all", "Wait for all of them (default), or for any one.")
    timeout_seconds: float = number(
        WAIT_SECONDS_DEFAULT, 0, WAIT_SECONDS_MAX, "Maximum time to wait. Default: 45."
    )
    after: int | None = Field(
        None,
        ge=0,
        description=(
            "after of the previous answer: acknowledges the reports up to there, which are not"
            " returned again."
        ),
    )


@tool(
    "subagents_wait",
    title="Wait for sub-agents",
    description=(
        "Wait until your active sub-agents, or the targets, are done, and read their reports."
        " Earlier reports are returned again until you pass after. Status waiting means that the"
        " time ran out: wait again. If you stop waiting, the sub-agents continue."
    ),
    scope="read",
    output=WaitAnswer,
    judged_as=(CONTROL_TOOL,),
    reads=False,
)
async def wait(call: McpCall, arguments: Wait) -> ToolAnswer:
    """Implement `subagents_wait`.

    If the caller gives up, no run stops and no report is lost: reports stay unacknowledged until a
    later wait passes the `after` that came with them.
    """
    require_scope(call.caller, "read")
    any_suffices, seconds = arguments.until == "any", arguments.timeout_seconds
    enough = 1 if any_suffices else None
    names, after = arguments.targets, arguments.after
    if names:
        return await _wait_for_targets(call, names, seconds, enough)
    if after is not None:
        await _acknowledge(call, after)
    runs = await awaited_runs(call)
    if any_suffices and await _reports(call, after):
        seconds = 0
    awaited = await wait_for_runs(call, runs, seconds, enough=enough)
    reports = await _reports(call, after)
    reported = {run.run_id for run in reports}
    silent = [run for run in awaited.over if not is_unread(run) and run.run_id not in reported]
    view = await _awaited_view(call, [*reports[:REPORTS_GIVEN_MAX], *silent], awaited.open)
    last = inbox_position(reports[:REPORTS_GIVEN_MAX][-1]) if reports else after
    more = len(reports) > REPORTS_GIVEN_MAX
    return _wait_answer(view.model_copy(update={"after": last, "more": more}))


async def _reports(call: McpCall, after: int | None) -> list[Run]:
    """Return the reports after a position, or else the unacknowledged ones.

    One more than an answer holds, to show that there are more.
    """
    if after is not None:
        return list(await reports_behind(call, after, REPORTS_GIVEN_MAX + 1))
    return (await unread_reports(call))[: REPORTS_GIVEN_MAX + 1]


async def _acknowledge(call: McpCall, position: int) -> None:
    """Acknowledge the reports up to a position, if the caller may read and acknowledge them."""
    if not call.caller.may("content"):
        return
    if call.caller.run_id is None and not call.caller.may("control"):
        return
    for run in (await unread_reports(call))[:REPORTS_GIVEN_MAX]:
        if inbox_position(run) <= position:
            await call.services.announcing.acknowledge(
                run, call.caller.actor, position=inbox_position(run)
            )


async def _wait_for_targets(
    call: McpCall, names: Sequence[str], seconds: float, enough: int | None
) -> ToolAnswer:
    """Wait for these sub-agents. Their reports are returned each time, acknowledged or not."""
    recent = timedelta(minutes=RECENT_MINUTES_MAX)
    run_ids = {(await find_target(call, name, recent)).run_id: None for name in names}
    runs = [await call.services.work.run(UUID(run_id)) for run_id in run_ids]
    only = str(runs[0].run_id) if len(runs) == 1 else None
    if only is not None and call.follows_tasks and not is_over(runs[0]):
        return ToolAnswer({}, run_id=only)
    awaited = await wait_for_runs(call, runs, seconds, enough=enough)
    return _wait_answer(await _awaited_view(call, awaited.over, awaited.open), run_id=only)


def _wait_answer(view: WaitAnswer, run_id: str | None = None) -> ToolAnswer:
    texts = [awaited.announcement.text for awaited in view.done if awaited.announcement]
    names = ", ".join(run.label or str(run.run_id) for run in view.pending)
    again = f" with after: {view.after}" if view.after is not None else ""
    lines = [text for text in texts if text]
    if view.more:
        lines.append(f"There are more reports: call subagents_wait{again}.")
    elif view.pending:
        lines.append(f"Still running: {names}. Call subagents_wait{again}.")
    else:
        lines.append("All are done.")
    text = "\n\n".join(lines)
    return ToolAnswer(members_of(view.model_copy(update={"text": text})), text, run_id=run_id)


async def _awaited_view(call: McpCall, over: Sequence[Run], pending: Sequence[Run]) -> WaitAnswer:
    work, bars = call.services.work, call.services.run_bars
    announced = [run for run in over if run.inbox is not None]
    views = await announcement_views(work.contents, announced, with_text=call.caller.may("content"))
    by_run = {view.run_id: view for view in views}
    done = [
        AwaitedRun(run=summary, announcement=by_run.get(summary.run_id))
        for summary in await run_summaries(tuple(over), work.contents, bars)
    ]
    left = await run_summaries(tuple(pending[:TARGETS_MAX]), work.contents, bars)
    return WaitAnswer(
        status="waiting" if left else "done",
        done=done,
        pending=left,
        more=False,
        after=None,
        text="",
    )


async def answer_after_wait(call: McpCall, run: Run) -> ToolAnswer:
    """Return the answer of a wait for one run that is over."""
    newest = await newest_of_session(call, run)
    return _wait_answer(await _awaited_view(call, (newest,), ()))
