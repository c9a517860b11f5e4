"""What a spawn may attach."""

import base64
import re
from collections.abc import Mapping

import pytest

from domain.attachments import AttachmentAsked, AttachmentRefusal, judge
from domain.configuration.tools import Attachments
from domain.strict_base64 import decode_strict_base64
from tests.support.case_comparison import hold
from tests.support.cases import Answer, Case, Given, Runner, cases_of

_WORDS = re.compile(
    r"base64 of (?P<bytes>\d+) bytes|base64 of '(?P<text>[^']*)'|(?P<sign>.) x (?P<times>\d+) .*"
)


def judged(given: Given) -> Answer:
    """What is answered to the attachments under the configuration of the case."""
    limits = given.get("config", {"enabled": given.get("enabled", False)})
    asked = [
        AttachmentAsked(one["name"], one["content"], one.get("encoding"))
        for one in given["attachments"]
    ]
    verdict = judge(asked, Attachments.model_validate(limits))
    if isinstance(verdict, AttachmentRefusal):
        return {"status": verdict.status, "error": verdict.text}
    return {"status": "accepted"}


def decoded(given: Given) -> Answer:
    """What the text stands for, which some cases describe in words."""
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
