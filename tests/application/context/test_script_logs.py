"""What the log says of context scripts, level by level."""

import json
import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import httpx2
import pytest

from application.context.scripts import ContextGatherer
from application.log.texts import TextStore
from application.ports.configurations import PinnedConfiguration
from application.ports.scripts import Mask, ScriptFinished, ScriptRun
from infrastructure.outbound.configuration.load import LoadedConfiguration
from infrastructure.outbound.identity.identifiers import RandomIdentities
from infrastructure.outbound.scripts.secrets import ConfiguredSecrets
from tests.support.builders.configurations import load_values
from tests.support.builders.storytelling import requested, run_id, run_of

SECRET = "canary-s3cret-of-the-environment"
HEADER = "canary-s3cret-of-a-header"


class Says:
    """Each script ends as `ended` says of its id."""

    def __init__(self, ended: Callable[[ScriptRun], ScriptFinished]) -> None:
        self._ended = ended

    async def run(self, request: ScriptRun) -> ScriptFinished:
        return self._ended(request)


class Nothing:
    """Masks with a sign that is seen."""

    def mask_for(self, pinned: PinnedConfiguration) -> Mask:
        return lambda text: text.replace("s3cret", "***")


def configured(*scripts: dict[str, Any]) -> LoadedConfiguration:
    entries = [{"uri": "~/path", "agentIdOverrideKey": "agent", **one} for one in scripts]
    agents = {
        "list": [{"id": "main"}, {"id": "agent-x"}],
        "defaults": {"subagents": {"contextScripts": {"run": entries}}},
    }
    return load_values({"agents": agents, "env": {"X_TOKEN": HEADER}})


async def lines(
    caplog: pytest.LogCaptureFixture,
    ended: Callable[[ScriptRun], ScriptFinished],
    *scripts: dict[str, Any],
    secrets: Any = None,
) -> list[str]:
    caplog.set_level(logging.DEBUG, "spawnlog.scripts")
    loaded = configured(*scripts)
    pinned = PinnedConfiguration(1, loaded.configuration, loaded.stored)
    text_store = TextStore(run_id(1), b"key", RandomIdentities().event_id)
    gathering = ContextGatherer(Says(ended), secrets=secrets or Nothing())
    agent = pinned.configuration.effective_agent("main")
    await gathering.gather(run_of(requested()), agent, "task", pinned, text_store)
    return [one.getMessage() for one in caplog.records if one.name == "spawnlog.scripts"]


def giving(raw: bytes, **more: Any) -> Callable[[ScriptRun], ScriptFinished]:
    return lambda _: ScriptFinished(raw=raw, exit_code=0, **more)


async def test_false_is_silent(caplog: pytest.LogCaptureFixture) -> None:
    assert await lines(caplog, giving(b"text"), {"id": "s"}) == []


async def test_true_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    told = await lines(caplog, giving(b"x" * 2821), {"id": "my-script", "log": True})
    assert told == ["[context-script] my-script (~/path) → 2821 chars"]


async def test_verbose_is_command_output_proposal_candidates_and_winner(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def ended(request: ScriptRun) -> ScriptFinished:
        name = {"script-a": "agent-x", "script-b": "agent-y"}[request.script.id]
        said = f'{{"message": "m", "agent": "{name}"}}'
        called = (("command:", ("/x", "a=b")), ("stdin:", "{}"))
        return ScriptFinished(raw=said.encode(), exit_code=0, called=called)

    told = await lines(
        caplog,
        ended,
        {"id": "script-a", "log": "verbose", "priority": 100},
        {"id": "script-b", "log": "verbose", "priority": 50},
    )
    assert told[:5] == [
        '[context-script] script-a command: ["/x","a=b"]',
        '[context-script] script-a stdin: "{}"',
        '[context-script] script-a output: "{\\"message\\": \\"m\\", \\"agent\\": \\"agent-x\\"}"',
        "[context-script] script-a proposed agentIdOverride: agent-x",
        "[context-script] script-a (~/path) → 1 chars",
    ]
    assert told[-1] == (
        "[context-script] agentIdOverride candidates: [script-a→agent-x (pri:100 ✓),"
        " script-b→agent-y (pri:50 ✗)] → winner: script-a→agent-x"
    )


async def test_nobody_who_is_valid_is_told_so(caplog: pytest.LogCaptureFixture) -> None:
    told = await lines(
        caplog, giving(b'{"agent": "nobody"}'), {"id": "a", "log": "verbose", "priority": 1}
    )
    assert told[-1] == (
        "[context-script] agentIdOverride candidates: [a→nobody (pri:1 ✗)] → none valid"
    )


async def test_a_secret_in_a_long_proposal_is_masked_before_the_proposal_is_cut(
    caplog: pytest.LogCaptureFixture,
) -> None:
    said = f'{{"agent": "{"x" * 76}s3cret"}}'.encode()
    told = await lines(caplog, giving(said), {"id": "a", "log": "verbose"})
    assert told[-1] == (
        f"[context-script] agentIdOverride candidates: [a→{'x' * 76}*** (pri:0 ✗)] → none valid"
    )


async def test_a_failure_is_told_with_its_reason_whatever_a_script_asks_for(
    caplog: pytest.LogCaptureFixture,
) -> None:
    error = "Script exited with code 3: s3cret\nline " + "x" * 400
    for level in (False, True):
        caplog.clear()
        told = await lines(
            caplog, lambda _: ScriptFinished(exit_code=3, error=error), {"id": "s", "log": level}
        )
        assert told[0].startswith("[context-script] s failed: Script exited with code 3: *** l")
        assert len(told[0]) < 340


async def test_a_secret_is_masked_before_a_text_is_cut(caplog: pytest.LogCaptureFixture) -> None:
    script = {"id": "s", "log": "verbose"}
    failed = ScriptFinished(exit_code=3, error="x" * 296 + "s3cret")
    assert "s3" not in "".join(await lines(caplog, lambda _: failed, script))
    caplog.clear()
    said = await lines(caplog, giving(b"x" * 9000 + b"s3cret" + b"x" * 9000), script)
    assert "***" in said[0]
    assert "s3cret" not in "".join(said)


async def test_no_line_can_be_forged_and_none_is_endless(caplog: pytest.LogCaptureFixture) -> None:
    raw = b"a\n2026-01-01 ERROR forged\r\x1b[31m\xe2\x80\xa8" + b"x" * 200_000
    told = await lines(caplog, giving(raw), {"id": "s", "log": "verbose"})
    assert all(line.isprintable() for line in told)
    assert all(len(line) < 17_000 for line in told)


async def test_secrets_of_the_configuration_and_of_variables_stand_in_no_line(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    script = {
        "id": "s",
        "uri": "https://${HOOK_WORD}:${HOOK_WORD}@h/?sig=${HOOK_WORD}",
        "log": "verbose",
    }
    file = configured(script)
    assert file.secret_pointers == ("/env/X_TOKEN",)

    def ended(request: ScriptRun) -> ScriptFinished:
        call = (("GET", f"https://h/?sig={SECRET}"), ("body:", HEADER))
        error = None if caplog.records else f"HTTP 500: {SECRET} {HEADER}"
        said = f'{{"message": "{HEADER}", "agent": "{SECRET}"}}'
        return ScriptFinished(raw=said.encode(), status_code=200, error=error, called=call)

    secrets = ConfiguredSecrets(lambda _: file, {"HOOK_WORD": SECRET, "PATH": "/usr/bin:/bin"})
    for _ in range(2):
        told = await lines(caplog, ended, script, secrets=secrets)
    assert len(told) >= 8
    assert "[redacted]" in caplog.text
    assert SECRET not in caplog.text
    assert HEADER not in caplog.text


async def test_a_secret_that_a_url_and_json_write_otherwise_stands_in_no_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    secret = 'can"ary\\of the+word'
    script = {"id": "s", "uri": "https://h/?sig=${HOOK_WORD}", "log": "verbose"}
    file = configured(script)

    def ended(_: ScriptRun) -> ScriptFinished:
        url = str(httpx2.URL(f"https://h/?sig={secret}"))
        told = (("GET", url), ("command:", ("/x", f"a={secret}")), ("stdin:", secret))
        return ScriptFinished(raw=b"text", called=told)

    secrets = ConfiguredSecrets(lambda _: file, {"HOOK_WORD": secret})
    told = await lines(caplog, ended, script, secrets=secrets)
    assert [line.removeprefix("[context-script] s ") for line in told[:3]] == [
        'GET "https://h/?sig=[redacted]"',
        'command: ["/x","a=[redacted]"]',
        'stdin: "[redacted]"',
    ]


@pytest.mark.parametrize("quoting", ["form", "all"])
async def test_a_secret_that_a_service_gives_back_in_another_form_stands_in_no_line(
    caplog: pytest.LogCaptureFixture, quoting: str
) -> None:
    secret = 'can"ary\\of the+wörd/é'
    script = {"id": "s", "uri": "https://h/?sig=${HOOK_WORD}", "log": "verbose"}
    file = configured(script)
    in_url = quote(secret, safe="") if quoting == "all" else quote_plus(secret)
    forms = {
        "url": in_url,
        "lower": re.sub("%..", lambda found: found[0].lower(), in_url),
        "json": json.dumps({"told": secret}),
        "jsonAsText": json.dumps(json.dumps({"told": secret})),
        "inUrlAsJson": quote(json.dumps({"told": secret}), safe=""),
    }
    said = json.dumps({"message": forms, "agent": in_url})

    def ended(_: ScriptRun) -> ScriptFinished:
        error = f"HTTP 500: {forms}" if "(s)" in caplog.text else None
        return ScriptFinished(raw=said.encode(), status_code=200, error=error)

    secrets = ConfiguredSecrets(lambda _: file, {"HOOK_WORD": secret})
    told = "\n".join(await lines(caplog, ended, script, secrets=secrets))
    for form in (secret, *forms.values()):
        assert form not in told
    for piece in ("of the", "of%20the", "of+the", "rd/", "rd%2F"):
        assert piece not in told, told
    assert told.count("[redacted]") >= len(forms)
