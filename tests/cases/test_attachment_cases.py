"""Cases of attachments."""

import asyncio
import base64
import re
from collections.abc import Mapping

import pytest

from application.execution.launch import attachments_dir
from application.steps.step import StepRefusedError
from domain.configuration.tools import Attachments
from domain.context.attachments import AttachmentRefusal, RequestedAttachment, check_attachments
from domain.values.base64 import decode_strict_base64
from tests.support.builders.run_histories import (
    prepared,
    refused,
    resolved,
    step_begun,
    step_taken,
    step_undone,
)
from tests.support.builders.storytelling import ref, requested, run_of
from tests.support.cases.cases import Answer, Case, Given, Runner, cases_of
from tests.support.cases.comparison import hold
from tests.support.cases.forks import Failing, context_engine

_WORDS = re.compile(
    r"base64 of (?P<bytes>\d+) bytes|base64 of '(?P<text>[^']*)'|(?P<sign>.) x (?P<times>\d+) .*"
)


def judged(given: Given) -> Answer:
    """Return the answer to attachments under the configuration of the case.

    Of the steps after the files, the context engine is the one that can fail, and undoes them.
    """
    if "lineage_patch_error" in given:
        return asyncio.run(failed_behind(given["lineage_patch_error"]))
    limits = given.get("config", {"enabled": given.get("enabled", False)})
    attachments = [
        RequestedAttachment(attachment["name"], attachment["content"], attachment.get("encoding"))
        for attachment in given["attachments"]
    ]
    verdict = check_attachments(attachments, Attachments.model_validate(limits))
    if isinstance(verdict, AttachmentRefusal):
        return {"status": verdict.status, "error": verdict.text}
    return {"status": "accepted"}


async def failed_behind(text: str) -> Answer:
    """Let the context engine fail with this text after the files are written."""
    written = step_begun(), step_taken(outcome="written", manifest=ref("manifest"))
    events = (requested(), resolved(), prepared(), *written, step_begun("context_engine"))
    run = run_of(*events)
    assert attachments_dir(run) is not None
    engine = context_engine(Failing(text))
    with pytest.raises(StepRefusedError) as failed:
        await engine.make(run, run.steps[-1], is_resumed=False)
    result = failed.value.refusal
    refusal = refused(rule=result.rule, step="context_engine", text=ref("refusal"))
    run = run_of(*events, refusal)
    assert run.effect("undo", "attachments") is not None
    run = run_of(*events, refusal, step_undone("context_engine"), step_undone())
    return {
        "status": result.status,
        "error": result.text,
        "attachments_dir_exists": attachments_dir(run) is not None,
    }


def decoded(given: Given) -> Answer:
    """Return the decoded text, which some cases describe in words."""
    content = decode_strict_base64(_described(given["value"]), given["maxBytes"])
    return {"decoded": None if content is None else f"bytes of {content.decode()!r}"}


def _described(value: str) -> str:
    found = _WORDS.fullmatch(value)
    if found is None:
        return value
    if found["sign"]:
        return found["sign"] * int(found["times"])
    content = bytes(int(found["bytes"])) if found["bytes"] else found["text"].encode()
    return base64.b64encode(content).decode()


RUNNERS: Mapping[str, Runner] = {
    "attachments": judged,
    "attachments.name": judged,
    "attachments.base64": decoded,
}


@pytest.mark.parametrize("case", cases_of(RUNNERS))
def test_attachments_are_judged_as_the_case_says(case: Case) -> None:
    hold(RUNNERS[case.area](case.given), case)
