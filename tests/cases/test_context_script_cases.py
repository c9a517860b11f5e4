"""Cases of context scripts: their input, the reading of their output, and their failures."""

import json
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar
from uuid import uuid4

import pytest

from application.context.scripts import ContextGatherer
from application.log.texts import TextStore
from application.ports.configurations import PinnedConfiguration
from application.ports.scripts import ScriptFinished, ScriptRun
from domain.configuration.configuration import Configuration
from domain.configuration.context_scripts import ContextScript
from domain.context.script_output import ScriptReading, read_script_output
from domain.prompt.pieces import Contribution, task_message
from infrastructure.outbound.child_processes.program import Exit
from infrastructure.outbound.child_processes.run_to_end import ProgramResult
from infrastructure.outbound.scripts.failures import failure_of, status_failure
from infrastructure.outbound.scripts.http_request import request_of
from infrastructure.outbound.scripts.local import program_of
from tests.support.builders.run_histories import a_requested_run
from tests.support.builders.scripts import script_run
from tests.support.builders.storytelling import run_of
from tests.support.cases.cases import Answer, Case, Given, Runner, cases_of
from tests.support.cases.comparison import Whole, hold

Result = TypeVar("Result")
RUN = script_run("/x")


class FailingScripts:
    """Every script fails in this way."""

    def __init__(self, exit_code: int, error: str) -> None:
        self._finished = ScriptFinished(exit_code=exit_code, error=error, duration_ms=1)

    async def run(self, request: ScriptRun) -> ScriptFinished:
        """Return the result at once."""
        return self._finished


def without_waiting(work: Coroutine[Any, Any, Result]) -> Result:
    """Return the result of work that never waits."""
    try:
        work.send(None)
    except StopIteration as ended:
        result: Result = ended.value
        return result
    raise AssertionError("it waits")


def failure(*, timed_out: bool, code: int | None = None, stderr: str = "") -> str | None:
    """Return the text about a script that ended like this."""
    finished = ProgramResult(
        stdout=b"",
        stderr_tail=stderr.encode(),
        exit=Exit(error="killed", killed=True) if timed_out else Exit(code=code),
        timed_out=timed_out,
        overflowed=False,
        duration_seconds=1,
    )
    limit = RUN.script.timeout_seconds
    return failure_of(finished, script_run("/x", timeout_seconds=limit), "/x")


def read(given: Given) -> ScriptReading:
    """Return the reading of an output; a value that is not a text becomes JSON."""
    output = given["output"]
    return read_script_output(
        script_id="<id>",
        text=output if isinstance(output, str) else json.dumps(output),
        return_key=given.get("returnKey"),
        error_key=given.get("errorKey"),
    )


def of_failures(given: Given) -> Answer:
    """Run a script that takes too long, or exits with another code than 0; the spawn continues if
    nothing is raised.
    """
    limit = RUN.script.timeout_seconds
    if "runs_for_s" in given:
        error = failure(timed_out=given["runs_for_s"] > limit)
        return {"timeoutMs": limit * 1000, "json_error": error}
    error = failure(timed_out=False, code=given["exit"], stderr=given["stderr"])
    assert error is not None
    pinned = PinnedConfiguration(1, listing([{"id": "a"}]), {})
    gathering = ContextGatherer(FailingScripts(given["exit"], error))
    text_store = TextStore(uuid4(), bytes(32), uuid4)
    run, agent = run_of(*a_requested_run()), pinned.configuration.effective_agent("a")
    gathered = without_waiting(gathering.gather(run, agent, "t", pinned, text_store))
    result = {content.ref.id: content.text for content in text_store.contents}
    (receipt,) = gathered.receipts
    assert receipt.error is not None
    continues = "continues" if receipt.outcome == "failed" else receipt.outcome
    return {"error": result[receipt.error.id], "spawn": continues}


def of_urls(given: Given) -> Answer:
    """Return the request to a URL, or the text about its answer. A variable is a task here:
    `argMap` maps to its own names.
    """
    if "status" in given:
        return {"error": status_failure(given["status"], given["statusText"])}
    result = dict.fromkeys(given["argMap"], "task")
    (value,) = given["argMap"].values()
    entry = {"method": given["method"]} if "method" in given else {}
    request = script_run(given["uri"], argMap=result, variables={"task": value}, **entry)
    sent = request_of(request, given["uri"])
    return {
        "url": str(sent.url),
        "method": sent.method,
        "content-type": sent.headers.get("Content-Type"),
        "body": None if sent.body is None else Whole(json.loads(sent.body)),
    }


def of_programs(given: Given) -> Answer:
    """Return the arguments of a program. A variable is a task here: `argMap` maps to its own
    names.
    """
    result = dict.fromkeys(given["argMap"], "task")
    (value,) = given["argMap"].values()
    request = script_run("/x", format=given["format"], argMap=result, variables={"task": value})
    program = program_of(request, "/x", {})
    assert program.stdin is not None
    return {"stdin_json": Whole(json.loads(program.stdin)), "argv": list(program.argv[1:])}


def listing(
    defaults: list[dict[str, Any]], agent: Mapping[str, Any] | None = None
) -> Configuration:
    """Return a configuration with these scripts, for all agents and for `main`."""
    own = agent or {}
    scripts = {"ignore": own.get("ignore", []), "run": _with_files(own.get("run", []))}
    section = {
        "defaults": {"subagents": {"contextScripts": {"run": _with_files(defaults)}}},
        "list": [{"id": "main", "subagents": {"contextScripts": scripts}}],
    }
    return Configuration.model_validate({"agents": section})


def _with_files(scripts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"uri": "/x", **script} for script in scripts]


def scripts(given: Given) -> Answer:
    """Run a case by its given values: an output, proposals, a failure, a URL, a program, the text
    around a task, or definitions.
    """
    if "output" in given:
        reading = read(given)
        return {"content": reading.content, "error": reading.error}
    if "values" in given:
        outputs = [json.dumps({"message": "m", "key": value}) for value in given["values"]]
        readings = [
            read_script_output(script_id="s", text=output, agent_id_override_key="key")
            for output in outputs
        ]
        return {"results": [reading.override for reading in readings]}
    if "runs_for_s" in given or "exit" in given:
        return of_failures(given)
    if "uri" in given or "status" in given:
        return of_urls(given)
    if "format" in given:
        return of_programs(given)
    if "prepend" in given:
        before, after = Contribution("a", given["prepend"]), Contribution("b", given["append"])
        return {"message": task_message(given["task"], prepend=[before], append=[after]).text}
    if "defaults.run" in given:
        configured = listing(given["defaults.run"], given["agent"])
        return {
            "order": [script.id for script in configured.effective_agent("main").context_scripts]
        }
    defined = [ContextScript.model_validate(item) for item in given["run"]]
    return {item.id: item.model_dump(mode="json", by_alias=True) for item in defined}


RUNNERS: Mapping[str, Runner] = {"contextScripts": scripts}


@pytest.mark.parametrize("case", cases_of(RUNNERS))
def test_a_script_is_run_as_the_case_says(case: Case) -> None:
    hold(RUNNERS[case.area](case.given), case)
