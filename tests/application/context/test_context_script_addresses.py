"""The address of a script, as receipts and the log of the server show it."""

import logging

import pytest

from application.context.scripts import ContextGatherer, GatheredContext
from application.log.texts import TextStore
from application.ports.configurations import PinnedConfiguration
from application.ports.scripts import ScriptFinished, ScriptRun
from domain.configuration.configuration import Configuration
from infrastructure.outbound.identity.identifiers import RandomIdentities
from tests.support.builders.storytelling import requested, run_id, run_of


class Hook:
    """Answers each script as something at its URL would."""

    async def run(self, request: ScriptRun) -> ScriptFinished:
        if not request.script.is_remote:
            return ScriptFinished(error="no file is run here")
        return ScriptFinished(raw=b"context", status_code=200, duration_ms=1)


async def gathered(*uris: str) -> GatheredContext:
    """What comes of scripts that a revision kept before such addresses were refused."""
    run = [
        {"id": f"s{number}", "uri": uri, "log": "verbose", "errorHandling": "stop"}
        for number, uri in enumerate(uris)
    ]
    values = {"agents": {"defaults": {"subagents": {"contextScripts": {"run": run}}}}}
    pinned = PinnedConfiguration(1, Configuration.model_validate(values), values)
    text_store = TextStore(run_id(1), b"key", RandomIdentities().event_id)
    spawn, agent = run_of(requested()), pinned.configuration.effective_agent("main")
    return await ContextGatherer(Hook()).gather(spawn, agent, "task", pinned, text_store)


async def test_neither_receipt_nor_log_holds_what_is_secret_in_an_address(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "spawnlog.scripts")
    uris = ("https://s3cret@host/a", "https://host/b?x=1&sig=s3cret", "a-file", "https://s3cret@c/")
    receipts = (await gathered(*uris)).receipts

    assert [(one.uri, one.outcome) for one in receipts] == [
        ("https://[secret]@host/a", "injected"),
        ("https://host/b?x=1&sig=[secret]", "injected"),
        ("a-file", "failed"),
        ("https://[secret]@c/", "skipped"),
    ]
    assert "(https://[secret]@host/a)" in caplog.text
    assert "s3cret" not in caplog.text


async def test_an_address_that_refers_to_variables_is_shown_as_it_is_written() -> None:
    uri = "https://${USER}@host/?sig=${SIG}"
    (receipt,) = (await gathered(uri)).receipts
    assert receipt.uri == uri
