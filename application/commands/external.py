"""Who may execute runs from outside: what is asked before a claim or a report."""

from uuid import UUID

from application.commands.services import CommandServices
from application.queries.access import Caller
from application.queries.errors import QueryError
from application.queries.runs import run_id_of


async def executable_run(services: CommandServices, caller: Caller, text: str) -> UUID:
    """The run, if the caller may execute it: with the scope `worker` what is below the sessions
    that it acts for, with `spawn` what these sessions have asked for themselves."""
    run_id = run_id_of(text)
    run = await services.work.registry.run(run_id)
    if run is None or not await services.access.covers_run(caller, run):
        raise QueryError("not_found", "there is no such run", runId=text)
    spawned = caller.may("spawn") and caller.acts_for(run.requester.session_key)
    if caller.run_id == run_id or not (caller.may("worker") or spawned):
        raise QueryError(
            "not_permitted",
            "a run is executed with the token that spawned it, or with one that has the scope"
            ' "worker"',
        )
    return run_id
