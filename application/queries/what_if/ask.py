"""The request of a what-if: the configuration to try, the range and the filter."""

from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Annotated, Any

from pydantic import Field

from application.concurrency.bulkhead import BulkheadFullError
from application.ports.configurations import NoActiveConfigurationError, RevisionErasedError
from application.ports.registry import RunQuery
from application.queries.access import Caller, require_scope
from application.queries.as_of import AsOf, resolve_as_of, resolve_range
from application.queries.command import USUAL, Command, Option
from application.queries.errors import QueryError, invalid_value
from application.queries.operation import operation
from application.queries.runs import run_id_of, visible_run
from application.queries.services import QueryServices
from application.queries.session_reference import resolve_session_key, unknown_session
from application.queries.views.what_if import WhatIfLine
from application.queries.what_if.answer import Criteria, WhatIfAnswer
from application.queries.what_if.candidates import SOURCE, Candidates, read_configuration
from application.queries.what_if.cases import CaseReader
from domain.configuration.problems import ConfigurationError, nearest_word
from domain.session.state import Session
from domain.values.agent_id import is_valid_agent_id, normalise_agent_id
from domain.values.body import Body
from domain.values.json_text import compact_json
from domain.values.moments import MOMENT_CHARACTERS_MAX, MOMENT_FORMS
from domain.what_if.change import WholeConfiguration
from domain.what_if.verdict import SAME, VERDICTS, VerdictName

AT_ONCE_MAX = 2
"""Maximum number of concurrent what-ifs on one server; each uses a whole processor."""
CONFIG_CHARACTERS_MAX = 512 * 1024
NAME_CHARACTERS_MAX = 4096
PATCH_OPERATIONS_MAX = 1_000
AGENTS_MAX = 100
_Moment = Annotated[str | None, Field(max_length=MOMENT_CHARACTERS_MAX)]
_Name = Annotated[str | None, Field(max_length=2048)]


class WhatIfFilter(Body):
    """The decisions to report; all filters must match. With `cascade`, all other decisions are
    replayed too, but not reported."""

    run_id: Annotated[_Name, Field(description="Only this run.")] = None
    tree: Annotated[
        _Name, Field(description="Only the tree below this root session, by its key or session id.")
    ] = None
    requester: Annotated[
        _Name, Field(description="Only runs requested by this session, by its key or session id.")
    ] = None
    agent_ids: Annotated[
        list[str],
        Field(
            alias="agentId",
            max_length=AGENTS_MAX,
            description="Only runs of these agents. Empty: of all.",
        ),
    ] = Field(default_factory=list)


class WhatIfBody(Body):
    """Another configuration, and the decisions to replay under it. Exactly one of `config`,
    `configText` and `patch` is required."""

    config: Annotated[
        dict[str, Any] | None, Field(description="The configuration, as a JSON object.")
    ] = None
    config_text: Annotated[
        str | None,
        Field(max_length=CONFIG_CHARACTERS_MAX, description="The configuration, as JSON5 text."),
    ] = None
    config_name: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=NAME_CHARACTERS_MAX,
            description="File name of `configText` in error messages.",
        ),
    ] = None
    patch: Annotated[
        list[dict[str, Any]] | None,
        Field(
            max_length=PATCH_OPERATIONS_MAX,
            description=(
                "JSON Patch (RFC 6902) of the revision under which each decision was made."
            ),
        ),
    ] = None
    begin: Annotated[
        _Moment,
        Field(
            alias="from",
            description=f"Start of the range: {MOMENT_FORMS}. Default: the beginning of the log.",
        ),
    ] = None
    end: Annotated[
        _Moment, Field(alias="to", description="End of the range, in the same forms. Default: now.")
    ] = None
    filter: WhatIfFilter = Field(default_factory=WhatIfFilter)
    only: Annotated[
        list[VerdictName],
        Field(max_length=20, description="Verdicts to report. Empty: all."),
    ] = Field(default_factory=list)
    cascade: Annotated[bool, Field(description="Assume that newly refused runs never ran.")] = False
    prompts: Annotated[bool, Field(description="Compose the prompts again and compare them.")] = (
        False
    )


FAILING = tuple(verdict for verdict in VERDICTS if verdict != SAME.verdict)
"""Verdicts that `--fail-on` accepts."""


@operation(
    "POST",
    "/v1/what-if",
    name="whatIf",
    tag="log",
    scope="read",
    summary="Replay recorded decisions under another configuration",
    description=(
        "Decides recorded spawns and messages again under another configuration, each from the"
        " facts recorded for it. It calls no script, runtime or hook, looks nothing up and writes"
        " nothing. The answer is JSON lines: one for each decision with its verdict, one about"
        " every second with the progress, and the totals last. An answer that ends with"
        " `failure`, or without totals, is incomplete. Requires a token for all sessions (`*`),"
        " and scope `content` for `prompts`."
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
            # The command reports every verdict that differs, and fails on some of them.
            "only": Option(
                flag="--fail-on",
                offers=FAILING,
                metavar="VERDICT",
                help=(
                    f"Exit with 1 on this verdict: {', '.join(FAILING[:-1])} or {FAILING[-1]}."
                    " May be repeated."
                ),
            ),
            "from": Option(
                flag="--since",
                metavar="TIME",
                help=f"Start of the range: {MOMENT_FORMS}. Default: the beginning of the log.",
            ),
            "to": Option(flag="--until", metavar="TIME", help="End of the range. Default: now."),
            "filter.runId": USUAL["runId"],
            "filter.tree": USUAL["tree"],
            "filter.requester": Option(
                metavar="KEY", means="requester", help="Only runs requested by this session."
            ),
            "filter.agentId": Option(
                flag="--agent", metavar="ID", help="Only runs of this agent; may be repeated."
            ),
            "cascade": Option(help="Assume that newly refused runs never ran."),
            "prompts": Option(help="Compose the prompts again and compare them."),
        },
    ),
)
async def what_if(services: QueryServices, caller: Caller, body: WhatIfBody) -> WhatIfAnswer:
    """Decide the decisions of a range again.

    Raises:
        QueryError: The request is invalid, or too many what-ifs are running.
    """
    if not caller.sees_everything:
        raise QueryError(
            "not_permitted",
            'what-if reads the whole log, which requires a token for all sessions ("*")',
        )
    if body.prompts:
        require_scope(caller, "content")
    candidates = _candidates(services, body)
    first, last_moment = await resolve_range(services, caller, body.begin, body.end)
    until, after = last_moment.position, _after(body.begin, first)
    known = await _in_force(services, candidates, until)
    wanted, last = body.filter, until
    tree = await _session_on_record(services, caller, wanted.tree, "/filter/tree", until)
    if tree is not None and tree.root_session_key != tree.session_key:
        text = f"is below another session: the root of its tree is {tree.root_session_key}"
        raise invalid_value("/filter/tree", text)
    pointer = "/filter/requester"
    requester = await _session_on_record(services, caller, wanted.requester, pointer, until)
    run_id = None
    if wanted.run_id is not None:
        moment = await resolve_as_of(services, caller, None)
        run = await visible_run(services, caller, wanted.run_id, moment)
        run_id = run_id_of(wanted.run_id)
        # Only a cascade depends on earlier decisions.
        if not body.cascade:
            after = max(after, run.created_position - 1)
        last = min(until, run.created_position)
    criteria = Criteria(
        run_id,
        tree.session_key if tree is not None else None,
        requester.session_key if requester is not None else None,
        await _agents_on_record(services, known, wanted.agent_ids, until),
        frozenset(body.only),
    )
    room = AsyncExitStack()
    try:
        await room.enter_async_context(services.processor_room.of("what-if"))
    except BulkheadFullError:
        raise QueryError(
            "what_if_busy",
            f"this server runs at most {AT_ONCE_MAX} what-ifs at once; retry when one of them is"
            " done",
        ) from None
    cases = CaseReader(
        services, candidates, until, is_cascade=body.cascade, is_with_prompts=body.prompts
    )
    return WhatIfAnswer(services, cases, criteria, after=after, until=until, last=last, room=room)


def _candidates(services: QueryServices, body: WhatIfBody) -> Candidates:
    """Return the configuration to try."""
    given = [option for option in (body.config, body.config_text, body.patch) if option is not None]
    if len(given) != 1:
        raise QueryError("invalid_request", "give exactly one of config, configText and patch")
    if body.config_name is not None and body.config_text is None:
        raise invalid_value("/configName", "requires configText")
    whole = None
    if body.config_text is not None:
        name = body.config_name or SOURCE
        whole = read_configuration(services, body.config_text, "/configText", name)
    elif body.config is not None:
        whole = read_configuration(services, compact_json(body.config), "/config")
    return Candidates(services, whole, body.patch or [])


async def _in_force(
    services: QueryServices, candidates: Candidates, until: int
) -> list[WholeConfiguration]:
    """Return the readable ones of: the configuration to try, the changed revision in force, and
    that revision as recorded.

    Raises:
        QueryError: The patch does not fit the revision in force, so it is probably a mistake.
    """
    found = [candidates.whole] if candidates.whole is not None else []
    with suppress(NoActiveConfigurationError, RevisionErasedError, ConfigurationError):
        revision = (await services.work.configurations.in_force(until)).revision
        found.append(await candidates.now(revision))
        found.append(await candidates.then(revision))
    return found


async def _session_on_record(
    services: QueryServices, caller: Caller, spelling: str | None, pointer: str, until: int
) -> Session | None:
    """Return the session that a filter names, or None if it names none.

    Raises:
        QueryError: No such session is on record. It would match nothing, and a build would pass.
    """
    if spelling is None:
        return None
    key = await resolve_session_key(services, caller, spelling, pointer=pointer, at=until)
    session = await services.work.registry.session(key, at=until)
    if session is None:
        unknown = await unknown_session(services, caller, spelling, position=until)
        raise QueryError("not_found", f"{pointer}: {unknown.detail}", position=until)
    return session


async def _agents_on_record(
    services: QueryServices, known: Iterable[WholeConfiguration], given: Sequence[str], until: int
) -> frozenset[str]:
    """Return the agents that a filter names.

    Raises:
        QueryError: No known configuration has one of them, and no run requested it.
    """
    index_of: dict[str, int] = {}
    for index, name in enumerate(given):
        if not is_valid_agent_id(name):
            raise invalid_value(
                f"/filter/agentId/{index}",
                "is not an agent id; it must match [a-z0-9][a-z0-9_-]{0,63}",
            )
        index_of.setdefault(normalise_agent_id(name), index)
    configured = {
        agent_id for configuration in known for agent_id in configuration.configuration.agent_ids()
    }
    for missing in index_of.keys() - configured:
        query = RunQuery.where(agent_id=missing)
        if await services.work.registry.runs(query, at=until, limit=1):
            continue
        nearest = nearest_word(missing, sorted(configured))
        hint = f'; did you mean "{nearest}"?' if nearest is not None else ""
        text = f'neither configuration has an agent "{missing}", and no run requested it{hint}'
        raise invalid_value(f"/filter/agentId/{index_of[missing]}", text)
    return frozenset(index_of)


def _after(since: str | None, moment: AsOf | None) -> int:
    if since is None or moment is None:
        return 0
    # A range begins at a position inclusively, but after an instant.
    return max(0, moment.position - 1) if since.startswith(("pos:", "run:")) else moment.position
