"""Context scripts of a spawn: order, time limits, proposals, records, logs, and replay of recorded
outputs.
"""

import asyncio
import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple
from urllib.parse import quote, quote_plus

import httpx2
import pytest

from application.context.recorded_scripts import NothingRecorded, RecordedOutput, RecordedScripts
from application.context.scripts import ContextGatherer, GatheredContext
from application.log.texts import TextStore
from application.ports.configurations import PinnedConfiguration
from application.ports.credentials import Credential
from application.ports.scripts import Mask, ScriptFinished, ScriptRun
from domain.configuration.configuration import Configuration, EffectiveAgent
from domain.configuration.context_scripts import SPAWN_VARIABLES, ContextScript
from domain.context.script_output import ScriptReading
from domain.plan.credentials import NOTHING_FOUND, FoundCredentials, MissingCredential
from domain.run.facts import RespawnFacts, ScriptReceipt, SpawnOptions
from domain.run.state import Run
from domain.values.refusals import ConfigurationMoved
from infrastructure.outbound.configuration.load import LoadedConfiguration
from infrastructure.outbound.identity.identifiers import RandomIdentities
from infrastructure.outbound.scripts.secrets import ConfiguredSecrets
from tests.support.builders.configurations import load_values
from tests.support.builders.script_receipts import receipt
from tests.support.builders.scripts import reading_again
from tests.support.builders.storytelling import requested, run_id, run_of
from world.model.log_invariants import stored_and_read

SECRET = "S3cret-of-a-variable"
HEADER = "canary-s3cret-of-a-header"
EARLIER = run_id(9)
Ends = Callable[[ScriptRun], ScriptFinished]


class Runner:
    """Runner that executes each script by a function; `ran` has each script and its time limit."""

    def __init__(self, ends: Ends | ScriptFinished) -> None:
        self._ends = ends
        self.ran: list[tuple[str, float]] = []

    async def run(self, request: ScriptRun) -> ScriptFinished:
        self.ran.append((request.script.id, request.timeout_seconds))
        return self._ends if isinstance(self._ends, ScriptFinished) else self._ends(request)


class Masking:
    """Masks one secret with a sign that is seen."""

    def mask_for(self, pinned: PinnedConfiguration) -> Mask:
        return lambda text: text.replace(SECRET, "[redacted]")


class Gathered(NamedTuple):
    """Gathered context, and the stored texts."""

    context: GatheredContext
    texts: Mapping[Any, str]

    @property
    def outcomes(self) -> dict[str, str]:
        return {receipt.id: receipt.outcome for receipt in self.context.receipts}

    def _texts(self, member: str) -> dict[str, str]:
        refs = {receipt.id: getattr(receipt, member) for receipt in self.context.receipts}
        return {name: self.texts[ref.id] for name, ref in refs.items() if ref is not None}

    @property
    def errors(self) -> dict[str, str]:
        return self._texts("error")

    @property
    def injected(self) -> dict[str, str]:
        return self._texts("injected")


def configured(
    *scripts: dict[str, Any], agents: Sequence[str] = ("other",), **values: Any
) -> LoadedConfiguration:
    """Return a configuration with these scripts, each of which may propose an agent."""
    run = [{"uri": "/s", "agentIdOverrideKey": "agent", **script} for script in scripts]
    defaults = {"subagents": {"contextScripts": {"run": run}}}
    listed = [{"id": name} for name in ("main", *agents)]
    return load_values({"agents": {"defaults": defaults, "list": listed}, **values})


async def gather(
    runner: Any,
    under: LoadedConfiguration | PinnedConfiguration,
    run: Run | None = None,
    *,
    recorded: Mapping[str, RecordedOutput] | None = None,
    **others: Any,
) -> Gathered:
    if isinstance(under, LoadedConfiguration):
        under = PinnedConfiguration(1, under.configuration, under.stored)
    store = TextStore(run_id(1), b"key", RandomIdentities().event_id)
    gatherer = ContextGatherer(runner, **others)
    run = run or run_of(requested())
    agent = under.configuration.effective_agent(run.requested_agent_id or "main")
    if recorded is None:
        context = await gatherer.gather(run, agent, "the task", under, store)
    else:
        context = await gatherer.reuse(run, agent, recorded, under, store)
    return Gathered(context, {content.ref.id: content.text for content in store.contents})


# Order, time and failures.


class Notes(Runner):
    """`hangs` takes all of its time, `fails` fails, `breaks` raises, any other proposes an
    agent."""

    def __init__(self) -> None:
        super().__init__(ScriptFinished(raw=b'{"message": "m", "agent": "other"}', exit_code=0))

    async def run(self, request: ScriptRun) -> ScriptFinished:
        finished = await super().run(request)
        name = request.script.id
        if name.startswith("hangs"):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(asyncio.Event().wait(), request.timeout_seconds)
            return ScriptFinished(error="it took too long")
        if name == "fails":
            return ScriptFinished(raw=b'{"agent": "other"}', exit_code=3, error="it failed")
        if name == "breaks":
            raise RuntimeError(name)
        return finished


@pytest.fixture
def notes() -> Notes:
    return Notes()


async def test_scripts_of_spawn_share_one_time(notes: Notes) -> None:
    loaded = configured(
        {"id": "hangs-1", "timeoutSeconds": 0.2},
        {"id": "hangs-2", "timeoutSeconds": 600},
        {"id": "late"},
        spawnlog={"scriptsTotalSeconds": 0.3},
    )
    found = await gather(notes, loaded)
    (first, first_script), (second, second_script) = notes.ran
    assert (first, second, first_script) == ("hangs-1", "hangs-2", 0.2)
    assert 0 < second_script <= 0.1
    assert found.outcomes == {"hangs-1": "failed", "hangs-2": "failed", "late": "skipped"}
    assert found.errors["late"] == "no time was left"
    assert found.context.override_to is None


async def test_script_has_10_seconds_and_all_have_30(notes: Notes) -> None:
    await gather(notes, configured({"id": "a"}, {"id": "b", "timeoutSeconds": 60}))
    (_, first), (_, second) = notes.ran
    assert first == 10
    assert 29 < second <= 30


async def test_stop_keeps_earlier_outputs_and_skips_later_scripts(notes: Notes) -> None:
    loaded = configured({"id": "a"}, {"id": "fails", "errorHandling": "stop"}, {"id": "b"})
    found = await gather(notes, loaded)
    assert [name for name, _ in notes.ran] == ["a", "fails"]
    assert found.outcomes == {"a": "injected", "fails": "failed", "b": "skipped"}
    assert found.errors == {"fails": "it failed", "b": "an earlier script stopped the rest"}
    assert [(candidate.script_id, candidate.verdict) for candidate in found.context.candidates] == [
        ("a", "winner")
    ]
    assert found.context.override_to == "other"


async def test_broken_runner_fails_no_spawn(notes: Notes, caplog: pytest.LogCaptureFixture) -> None:
    found = await gather(notes, configured({"id": "breaks"}, {"id": "b"}))
    assert found.outcomes == {"breaks": "failed", "b": "injected"}
    assert found.errors["breaks"] == "Script could not be run; the server's log says why"
    assert "context script breaks" in caplog.text


async def test_script_hears_spawn_and_configuration_without_secrets() -> None:
    heard: dict[str, Any] = {}

    def hear(request: ScriptRun) -> ScriptFinished:
        heard.update({name: request.variables.value_of(name) for name in SPAWN_VARIABLES})
        return ScriptFinished()

    loaded = configured({"id": "s"}, env={"A_TOKEN": "s3cret-of-the-file"})
    options = SpawnOptions(cleanup="delete")
    run = run_of(requested(requested_agent_id="steward", label="a label", options=options))
    await gather(Runner(hear), loaded, run)
    cfg = heard.pop("cfg")
    assert heard == {
        "targetAgentId": "steward",
        "task": "the task",
        "label": "a label",
        "requesterAgentId": run.requester.agent_id,
        "requesterSessionKey": run.requester.session_key,
        "cleanup": "delete",
    }
    assert cfg == loaded.stored
    assert "s3cret" not in str(cfg)
    assert "/env/A_TOKEN" in str(cfg)


# Whom a script proposes.


class WithoutThoseOf:
    """Credentials that these agents lack; `asked` lists the agents that were looked up."""

    def __init__(self, *agents: str) -> None:
        self._agents = agents
        self.asked: list[str] = []

    async def found(self, pinned: PinnedConfiguration, agent: EffectiveAgent) -> FoundCredentials:
        self.asked.append(agent.id)
        if agent.id not in self._agents:
            return NOTHING_FOUND
        return FoundCredentials(missing=(MissingCredential("KEY", "KEY is not set", True),))

    async def environment(
        self, pinned: PinnedConfiguration, agent_id: str
    ) -> Mapping[str, Credential]:
        raise AssertionError("nothing is started")


@pytest.mark.parametrize(
    ("without", "taken", "requested", "verdicts"),
    [
        ("", "best", "best", "winner lower_priority"),
        ("best", "second", "best second", "credentials_missing winner"),
        ("best second", None, "best second", "credentials_missing credentials_missing"),
    ],
)
async def test_best_proposal_with_credentials_is_taken(
    without: str, taken: str | None, requested: str, verdicts: str
) -> None:
    def propose(request: ScriptRun) -> ScriptFinished:
        text = json.dumps({"message": "m", "agent": request.script.id})
        return ScriptFinished(raw=text.encode(), exit_code=0, duration_ms=1)

    credentials = WithoutThoseOf(*without.split())
    priorities = {"best": 3, "second": 2, "ghost": 1}
    loaded = configured(
        *({"id": name, "priority": priority} for name, priority in priorities.items()),
        agents=("best", "second"),
    )
    found = await gather(Runner(propose), loaded, credentials=credentials)
    assert found.context.override_to == taken
    assert credentials.asked == requested.split()
    assert [candidate.verdict for candidate in found.context.candidates] == [
        *verdicts.split(),
        "not_configured",
    ]
    # The priorities of the file are whole numbers.
    for fact in (*found.context.candidates, *found.context.receipts):
        stored_and_read(fact)


async def proposing(name: str, *agents: str) -> GatheredContext:
    finished = ScriptFinished(raw=json.dumps({"agent": name}).encode(), exit_code=0)
    loaded = configured({"id": "s"}, agents=agents)
    return (await gather(Runner(finished), loaded, secrets=Masking())).context


@pytest.mark.parametrize("name", [SECRET, f"x{SECRET}-y"])
async def test_proposed_secret_is_in_no_event(name: str) -> None:
    found = await proposing(name)
    (receipt,), (candidate,) = found.receipts, found.candidates
    assert (receipt.outcome, receipt.candidate) == ("injected", None)
    assert (candidate.agent_id, candidate.verdict) == (None, "not_configured")
    assert "s3cret" not in f"{receipt!r} {candidate!r}".lower()


async def test_proposed_agent_is_named_if_it_is_configured_or_no_secret() -> None:
    found = await proposing(SECRET, SECRET.lower())
    assert found.override_to == found.candidates[0].agent_id == SECRET.lower()
    assert found.receipts[0].candidate == SECRET
    found = await proposing("nobody")
    assert found.receipts[0].candidate == found.candidates[0].agent_id == "nobody"


# Stored receipts.


@pytest.mark.parametrize(
    "finished",
    [
        ScriptFinished(exit_code=3, error=f"Script exited with code 3: {SECRET}"),
        ScriptFinished(exit_code=0, raw=f'{{"error": "no {SECRET} here"}}'.encode()),
    ],
    ids=["a program that complains", "an output that reports it"],
)
async def test_error_of_script_is_kept_without_secrets(finished: ScriptFinished) -> None:
    found = await gather(Runner(finished), configured({"id": "s"}), secrets=Masking())
    (receipt,), error = found.context.receipts, found.errors["s"]
    assert "[redacted]" in error
    assert SECRET not in error
    if receipt.output is not None:
        mask = Masking().mask_for(PinnedConfiguration(1, Configuration(), {}))
        output = found.texts[receipt.output.id]
        again = reading_again(receipt, ContextScript(id="s", uri="/s"), output, error, mask)
        assert again == ScriptReading(error=error)


def from_uris(*uris: str) -> PinnedConfiguration:
    """Return scripts that a revision kept before such addresses were refused."""
    run = [
        {"id": f"s{number}", "uri": uri, "log": "verbose", "errorHandling": "stop"}
        for number, uri in enumerate(uris)
    ]
    values = {"agents": {"defaults": {"subagents": {"contextScripts": {"run": run}}}}}
    return PinnedConfiguration(1, Configuration.model_validate(values), values)


def answer_hook(request: ScriptRun) -> ScriptFinished:
    if not request.script.is_remote:
        return ScriptFinished(error="no file is run here")
    return ScriptFinished(raw=b"context", status_code=200, duration_ms=1)


async def test_secret_of_address_is_in_no_receipt_or_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "spawnlog.scripts")
    uris = ("https://s3cret@host/a", "https://host/b?x=1&sig=s3cret", "a-file", "https://s3cret@c/")
    found = await gather(Runner(answer_hook), from_uris(*uris))
    assert [(receipt.uri, receipt.outcome) for receipt in found.context.receipts] == [
        ("https://[secret]@host/a", "injected"),
        ("https://host/b?x=1&sig=[secret]", "injected"),
        ("a-file", "failed"),
        ("https://[secret]@c/", "skipped"),
    ]
    assert "(https://[secret]@host/a)" in caplog.text
    assert "s3cret" not in caplog.text


async def test_address_with_variables_is_shown_as_written() -> None:
    uri = "https://${USER}@host/?sig=${SIG}"
    (receipt,) = (await gather(Runner(answer_hook), from_uris(uri))).context.receipts
    assert receipt.uri == uri


# Log lines by level.

LINE = "[context-script] "


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Any:
    """Return a function that gathers once more and gives all lines of this test."""
    caplog.set_level(logging.DEBUG, "spawnlog.scripts")

    async def found(
        ends: Ends | ScriptFinished, *scripts: dict[str, Any], secrets: Any = None
    ) -> list[str]:
        loaded = configured(
            *({"uri": "~/path", **script} for script in scripts), agents=("agent-x",)
        )
        await gather(Runner(ends), loaded, secrets=secrets or Masking())
        return [
            record.getMessage() for record in caplog.records if record.name == "spawnlog.scripts"
        ]

    return found


def giving(raw: bytes, **more: Any) -> ScriptFinished:
    return ScriptFinished(raw=raw, exit_code=0, **more)


@pytest.mark.parametrize(
    ("script", "expected"),
    [({"id": "s"}, []), ({"id": "s", "log": True}, [f"{LINE}s (~/path) → 2821 chars"])],
)
async def test_log_false_is_silent_and_true_one_line(
    lines: Any, script: dict[str, Any], expected: list[str]
) -> None:
    assert await lines(giving(b"x" * 2821), script) == expected


async def test_invalid_proposal_is_logged_without_secrets(lines: Any) -> None:
    """A secret is masked before the proposal is cut."""
    output = giving(json.dumps({"agent": "x" * 76 + SECRET}).encode())
    found = await lines(output, {"id": "a", "log": "verbose", "priority": 1})
    assert found[-1].startswith(f"{LINE}agentIdOverride candidates: [a→{'x' * 76}[re")
    assert found[-1].endswith(" (pri:1 ✗)] → none valid")
    assert "S3c" not in found[-1]


@pytest.mark.parametrize("level", [False, True])
async def test_failure_is_logged_at_any_level(lines: Any, level: bool) -> None:
    error = f"Script exited with code 3: {SECRET}\nline " + "x" * 400
    (line, *_) = await lines(ScriptFinished(exit_code=3, error=error), {"id": "s", "log": level})
    assert line.startswith(f"{LINE}s failed: Script exited with code 3: [redacted] l")
    assert len(line) < 340


@pytest.mark.parametrize(
    "finished",
    [
        ScriptFinished(exit_code=3, error="x" * 296 + SECRET),
        giving(b"x" * 9000 + SECRET.encode() + b"x" * 9000),
    ],
)
async def test_secret_is_masked_before_text_is_cut(lines: Any, finished: ScriptFinished) -> None:
    found = "".join(await lines(finished, {"id": "s", "log": "verbose"}))
    assert "[re" in found
    assert "S3" not in found


async def test_no_line_is_forged_or_endless(lines: Any) -> None:
    raw = b"a\n2026-01-01 ERROR forged\r\x1b[31m\xe2\x80\xa8" + b"x" * 200_000
    found = await lines(giving(raw), {"id": "s", "log": "verbose"})
    assert all(line.isprintable() and len(line) < 17_000 for line in found)


def secrets_of(word: str, **env: str) -> tuple[dict[str, str], ConfiguredSecrets]:
    """Return a script whose address has a word of the environment, and its mask."""
    script = {"id": "s", "uri": "https://${W}:${W}@h/?sig=${W}", "log": "verbose"}
    file = configured(script, env=env)
    variables = {"W": word, "PATH": "/usr/bin:/bin"}
    return script, ConfiguredSecrets(lambda _: file, variables)


async def test_secrets_of_configuration_and_variables_are_in_no_line(
    lines: Any, caplog: pytest.LogCaptureFixture
) -> None:
    script, secrets = secrets_of(SECRET, X_TOKEN=HEADER)

    def ended(_: ScriptRun) -> ScriptFinished:
        call = (("GET", f"https://h/?sig={SECRET}"), ("body:", HEADER))
        error = None if caplog.records else f"HTTP 500: {SECRET} {HEADER}"
        text = json.dumps({"message": HEADER, "agent": SECRET})
        return ScriptFinished(raw=text.encode(), status_code=200, error=error, called=call)

    for _ in range(2):
        found = await lines(ended, script, secrets=secrets)
    assert len(found) >= 8
    assert "[redacted]" in caplog.text
    assert SECRET not in caplog.text
    assert HEADER not in caplog.text


async def test_secret_in_url_and_json_is_in_no_line(lines: Any) -> None:
    secret = 'can"ary\\of the+word'
    script, secrets = secrets_of(secret)
    url = str(httpx2.URL(f"https://h/?sig={secret}"))
    called = (("GET", url), ("command:", ("/x", f"a={secret}")), ("stdin:", secret))
    found = await lines(ScriptFinished(raw=b"text", called=called), script, secrets=secrets)
    assert [line.removeprefix(f"{LINE}s ") for line in found[:3]] == [
        'GET "https://h/?sig=[redacted]"',
        'command: ["/x","a=[redacted]"]',
        'stdin: "[redacted]"',
    ]


@pytest.mark.parametrize("quoting", ["form", "all"])
async def test_secret_returned_in_another_form_is_in_no_line(
    lines: Any, caplog: pytest.LogCaptureFixture, quoting: str
) -> None:
    secret = 'can"ary\\of the+wörd/é'
    script, secrets = secrets_of(secret)
    in_url = quote(secret, safe="") if quoting == "all" else quote_plus(secret)
    forms = {
        "url": in_url,
        "lower": re.sub("%..", lambda found: found[0].lower(), in_url),
        "json": json.dumps({"told": secret}),
        "jsonAsText": json.dumps(json.dumps({"told": secret})),
        "inUrlAsJson": quote(json.dumps({"told": secret}), safe=""),
    }
    text = json.dumps({"message": forms, "agent": in_url})

    def ended(_: ScriptRun) -> ScriptFinished:
        error = f"HTTP 500: {forms}" if "(s)" in caplog.text else None
        return ScriptFinished(raw=text.encode(), status_code=200, error=error)

    found = "\n".join(await lines(ended, script, secrets=secrets))
    for form in (secret, *forms.values()):
        assert form not in found
    for piece in ("of the", "of%20the", "of+the", "rd/", "rd%2F"):
        assert piece not in found, found
    assert found.count("[redacted]") >= len(forms)


# Outputs on record.


def script(name: str, **more: Any) -> ContextScript:
    return ContextScript.model_validate({"id": name, "uri": f"/{name}", **more})


def on_record(
    *outcomes: tuple[str, Literal["injected", "empty", "failed", "skipped"]], **more: Any
) -> RecordedScripts:
    return RecordedScripts(
        EARLIER,
        3,
        {name: script(name, **more) for name, _ in outcomes},
        {name: receipt(name, outcome) for name, outcome in outcomes},
    )


@pytest.mark.parametrize(
    "same",
    [{}, {"priority": 9}, {"position": "prepend"}, {"timeoutSeconds": 3}, {"log": True}],
)
def test_script_called_alike_is_used_again(same: dict[str, Any]) -> None:
    found = on_record(("who", "injected")).require_scripts([script("who", **same)])
    assert [item.id for item in found] == ["who"]


OTHER = r'"who" has changed since .* 3'


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"who": {"uri": "/other"}}, OTHER),
        ({"who": {"format": "json"}}, OTHER),
        ({"who": {"method": "POST"}}, OTHER),
        ({"who": {"argMap": {"a": "task"}}}, OTHER),
        ({"who": {"returnKey": "a"}}, OTHER),
        ({"who": {"errorKey": "a"}}, OTHER),
        ({"who": {"agentIdOverrideKey": "a"}}, OTHER),
        ({"new": {}}, '"new" did not run in that run'),
        ({"who": {}, "late": {}}, '"late" was skipped in that run'),
    ],
)
def test_script_called_otherwise_is_not_on_record(wanted: dict[str, Any], words: str) -> None:
    recorded = on_record(("who", "injected"), ("late", "skipped"))
    with pytest.raises(NothingRecorded, match=words):
        recorded.require_scripts([script(name, **value) for name, value in wanted.items()])


def test_script_that_failure_stops_need_not_be_on_record() -> None:
    recorded = on_record(("who", "failed"), ("late", "skipped"), error_handling="stop")
    stopping = script("who", errorHandling="stop")
    assert [item.id for item in recorded.require_scripts([stopping, script("late")])] == ["who"]
    with pytest.raises(NothingRecorded, match='"late" was skipped'):
        recorded.require_scripts([script("who"), script("late")])


async def reuse(recorded: Mapping[str, RecordedOutput], *scripts: dict[str, Any]) -> Gathered:
    def run_nothing(request: ScriptRun) -> ScriptFinished:
        raise AssertionError(f"{request.script.id} was run")

    run = run_of(requested(respawn=RespawnFacts(run_id=EARLIER, scripts="recorded")))
    return await gather(Runner(run_nothing), configured(*scripts), run, recorded=recorded)


async def test_recorded_outputs_are_read_and_nothing_runs() -> None:
    output = b'{"message": "you are other", "agent": "other"}'
    recorded = {
        "who": RecordedOutput(receipt("who", "injected", exit_code=0), output, None),
        "sad": RecordedOutput(receipt("sad", "failed", exit_code=3), b"half", "it failed"),
        "mute": RecordedOutput(receipt("mute", "empty", exit_code=0), b"", None),
    }
    listed = [{"id": name, "uri": f"/{name}"} for name in recorded]
    found = await reuse(recorded, *listed, {"id": "late", "uri": "/late", "priority": -1})
    assert found.outcomes == {
        "who": "injected",
        "sad": "failed",
        "mute": "empty",
        "late": "skipped",
    }
    assert found.injected == {"who": "you are other"}
    assert found.context.override_to == "other"
    assert [candidate.verdict for candidate in found.context.candidates] == ["winner"]
    receipts: dict[str, ScriptReceipt] = {receipt.id: receipt for receipt in found.context.receipts}
    assert found.errors["sad"] == "it failed"
    assert (receipts["sad"].exit_code, receipts["sad"].output_bytes) == (3, 4)
    whose = {name: receipt.reused_from for name, receipt in receipts.items()}
    assert whose == {"who": EARLIER, "sad": EARLIER, "mute": EARLIER, "late": None}
    # No time passed.
    assert {receipt.duration_ms for receipt in receipts.values()} == {0}


async def test_recorded_proposal_is_judged_by_present_configuration() -> None:
    output = b'{"message": "m", "agent": "gone"}'
    recorded = {"who": RecordedOutput(receipt("who", "injected", exit_code=0), output, None)}
    found = (await reuse(recorded, {"id": "who", "uri": "/who"})).context
    assert found.override_to is None
    assert [candidate.verdict for candidate in found.candidates] == ["not_configured"]


def test_chosen_revision_may_be_older() -> None:
    loaded = load_values({})
    pinned = PinnedConfiguration(2, loaded.configuration, loaded.stored)
    with pytest.raises(ConfigurationMoved):
        pinned.require_current(3)
    pinned.chosen().require_current(3)
    assert pinned.chosen().session_naming == pinned.session_naming
