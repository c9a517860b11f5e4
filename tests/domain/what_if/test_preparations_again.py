"""What-if for preparations: context scripts, preamble, files, thread, and steps."""

from typing import Any

import pytest

from domain.configuration.agents import BootstrapLimits
from domain.configuration.configuration import Configuration
from domain.context.bootstrap_files import BootstrapFile, select_bootstrap_files
from domain.run.facts import AttachmentsRequest, RespawnFacts, ScriptReceipt
from domain.what_if.unaffected import differ_in_limits_alone, is_admitted_alike
from tests.support.builders.decisions_again import (
    BINDING,
    Case,
    Outcome,
    Sent,
    Spawn,
    Values,
    allowed,
    at_hand,
    below,
    but,
    case,
    change_of,
    differs,
    limits,
    refused,
    rows,
    setup,
    still_refused,
    unknown,
)
from tests.support.builders.script_receipts import candidate, receipt
from tests.support.builders.storytelling import ref, run_id

# Context scripts: contributions to the message, and proposed agents.

FACTS: Values = {"id": "facts", "uri": "/scripts/facts", "returnKey": "message"}
FRONT: Values = {"id": "front", "uri": "/scripts/front", "position": "prepend"}
ROUTER: Values = {"id": "router", "uri": "/scripts/router", "agentIdOverrideKey": "agent"}
ELSEWHERE = {**ROUTER, "agentIdOverrideKey": "nowhere"}
OUTPUT = '{"message": "a fact", "note": "a note", "agent": "editor"}'


def running(*scripts: Values, agents: tuple[str | Values, ...] = ("editor",)) -> Values:
    """Return a file with these scripts for every agent."""
    return setup(*agents, default={"subagents": {"contextScripts": {"run": list(scripts)}}})


def ran(name: str, injected: str | None = None, **changes: Any) -> ScriptReceipt:
    """Return the receipt of a script that printed the output."""
    output: dict[str, Any] = {"output": ref(OUTPUT), "exit_code": 0, "error": None}
    output["injected"] = ref(injected) if injected is not None else None
    outcome = "injected" if injected is not None else "empty"
    return receipt(name, outcome, **{**output, "position": "append", **changes})


def spawn(*receipts: ScriptReceipt, **values: Any) -> Spawn:
    """Return a spawn with these receipts."""
    made = Spawn(receipts=receipts, **values)
    for text in (OUTPUT, "a fact"):
        made.texts.keep(text)
    return made


TOLD = spawn(ran("facts", "a fact"))
ROUTED = spawn(
    ran("router", candidate="editor"),
    candidates=(candidate("router", "editor"),),
    override_to="editor",
)
PROPOSED = spawn(
    ran("router", candidate="editor"),
    candidates=(candidate("router", "editor", "not_configured"),),
    agent_id="nobody",
)
NOTE, THEN = running({**FACTS, "returnKey": "note"}), running(ROUTER)
SCRIPTS = differs("context", "/contextScripts")
ANYBODY = {"agents": {"defaults": {"subagents": {"allowAgents": ["*"]}}}}
KNOWN = {"script": "facts", "position": "append"}


def thinking(agent_id: str) -> Values:
    """Return a file with the router, and one agent with a thinking level."""
    levels: Values = {"main": {}, "editor": {}, agent_id: {"thinking": "high"}}
    listed = [{"id": text, "subagents": levels[text]} for text in ("main", "editor")]
    return but(THEN, {"agents": {"list": listed}})


CONTEXT_SCRIPTS: dict[str, Case] = {
    "position": case(TOLD, running(FACTS), running({**FACTS, "position": "prepend"}), SCRIPTS),
    "return key, shown by size": case(
        TOLD,
        running(FACTS),
        NOTE,
        differs(
            "context",
            "/contextScripts",
            [{**KNOWN, "hmac": ref("a fact").hmac, "bytes": 6}],
            [{**KNOWN, "hmac": None, "bytes": 6}],
        ),
    ),
    "the same words by the default key": case(
        TOLD, running(FACTS), running({"id": "facts", "uri": "/scripts/facts"})
    ),
    "order of run, not of message": case(
        spawn(ran("facts", "a fact"), ran("front", "in front", position="prepend")),
        running(FACTS, FRONT),
        running(FACTS, {**FRONT, "priority": 9}),
    ),
    "output erased": case(
        TOLD,
        running(FACTS),
        NOTE,
        unknown('context script "facts": its output was erased'),
        erased=[OUTPUT],
    ),
    "no output": case(
        spawn(ran("facts", output=None)), running(FACTS), running({**FACTS, "returnKey": "a"})
    ),
    "step of the other agent": case(
        ROUTED.changed(refused_by="attachments"),
        THEN,
        running(ELSEWHERE),
        unknown("attachments: they were written for another agent"),
    ),
    "other agent is new": case(
        PROPOSED,
        but(running(ROUTER, agents=()), ANYBODY),
        but(THEN, ANYBODY),
        allowed("agent_unknown"),
    ),
}


@rows(CONTEXT_SCRIPTS)
def test_context_script(row: Case) -> None:
    row.check()


def test_scripts_that_had_not_run_are_unknown() -> None:
    refused_first = TOLD.changed(refused_by="workspace")
    record = refused_first.record(running(FACTS)).changed({"scripts": None})
    now = running({**FACTS, "position": "prepend"})
    missing = unknown("the context scripts: they had not run when the spawn was refused")
    case(refused_first, running(FACTS), running(FACTS), record=record).check()
    case(refused_first, running(FACTS), now, missing, record=record).check()


# The preamble, and the files of the folder.

WORDS = "so many words " * 20
PREAMBLE = Spawn(preamble=WORDS)
KEPT = Sent(preamble_kept=WORDS)
KEPT_CHARACTERS = differs("context", "/contextPreamble/keptCharacters")
CUT_WORDS = unknown("the preamble of the session: only its truncated text is on record")
FILES = Spawn(bootstrap=("x" * 300, "y" * 300))
CUT_FILES = unknown("the bootstrap files: only their text within the earlier limits is on record")


def words(characters: int, **own: Any) -> Values:
    """Return a file that limits the preamble to this many characters."""
    return setup(
        {"id": "main", "subagents": own},
        default={"subagents": {"contextPreambleMaxChars": characters}},
    )


def files(single: int, together: int = 150_000) -> Values:
    """Return a file that limits one bootstrap file, and all together, in characters."""
    return setup(default={"bootstrapMaxChars": single, "bootstrapTotalMaxChars": together})


def cut_at(characters: int) -> Spawn:
    """Return a child whose bootstrap files were truncated."""
    whole = [BootstrapFile("AGENTS.md", "x" * 1_000), BootstrapFile("TOOLS.md", "y" * 1_000)]
    cut = select_bootstrap_files(whole, BootstrapLimits(characters, 150_000))
    assert cut.warnings
    return FILES.changed(bootstrap=tuple(file.text for file in cut.files), warnings=cut.warnings)


# A warning about a model whose name looks like that of a bootstrap file.
NO_FILE = FILES.changed(model="acme/bootstrap-7b")
NO_MODELS = {"agents": {"defaults": {"runtime": {"type": "scripted", "models": []}}}}
WHAT_IT_READS: dict[str, Case] = {
    **{
        f"preamble {then} to {now}": case(PREAMBLE, words(then), words(now), KEPT_CHARACTERS)
        for then, now in [(4000, 50), (50, 4000), (50, 0), (0, 50), (100, 50)]
    },
    **{
        f"preamble {then} to {now}": case(PREAMBLE, words(then), words(now))
        for then, now in [(4000, 280), (280, 5000), (50, 52)]
    },
    "preamble erased": case(
        PREAMBLE,
        words(4000),
        words(50),
        unknown("the preamble: its text was erased"),
        erased=[WORDS],
    ),
    "preamble of a session": case(KEPT, words(4000), words(50), CUT_WORDS),
    "files, 300 each": case(FILES, files(20_000), files(300), CUT_FILES),
    "files fit exactly": case(FILES, files(1_000), files(20_000, 600)),
    "files were cut": case(cut_at(300), files(300), files(20_000), CUT_FILES),
    "no file": case(NO_FILE, but(files(1_000), NO_MODELS), but(files(20_000), NO_MODELS)),
    "light context": case(FILES.changed(light_context=True), files(20_000), files(1)),
}


@rows(WHAT_IT_READS)
def test_preamble_and_files(row: Case) -> None:
    row.check()


# Threads: a hook binds them, and its answer is not recorded.

HERE = '{"channel": "chat", "accountId": "work", "to": "room:1"}'
BOUND_BASE = but(setup("writer", default={"subagents": {"allowAgents": ["*"]}}), BINDING)
BOUND = Spawn(agent_id="writer", mode="session", thread=True, origin=HERE)
OTHERWISE = unknown("the thread: its settings changed (hooks or threadBindings)")
REBOUND = unknown("thread_binding: its settings changed (hooks or threadBindings)")
OFF = {"threadBindings": {"spawnSessions": False}}

OF_OTHERS: dict[str, Values] = {
    "another channel": {"channels": {"mail": OFF}},
    "another account": {"channels": {"chat": {"accounts": {"home": OFF}}}},
    "the same in other words": {"session": {"threadBindings": {"enabled": True}}},
}


def test_answer_of_binding_hook_is_not_recorded() -> None:
    another = {"subagentSpawning": {"url": "http://hooks.example/"}}
    now = but(BOUND_BASE, {"spawnlog": {"hooks": another}})
    case(BOUND, BOUND_BASE, now, OTHERWISE).check()
    case(BOUND.changed(refused_by="thread_binding"), BOUND_BASE, now, REBOUND).check()


@pytest.mark.parametrize(
    "change",
    [
        {"channels": {"chat": {"accounts": {"work": OFF}}}},
        {"spawnlog": {"hooks": {"subagentSpawning": None}}},
    ],
)
def test_thread_that_nobody_binds_is_refused(change: Values) -> None:
    off = but(BOUND_BASE, change)
    result = refused("thread_binding", "not running on a channel that can bind")
    case(BOUND, BOUND_BASE, off, result).check()
    case(BOUND, off, BOUND_BASE, REBOUND).check()
    newly_admitted = still_refused("allow_agents", "thread_binding")
    case(BOUND, setup("writer"), off, newly_admitted).check()


THREADS: dict[str, Case] = {
    **{name: case(BOUND, BOUND_BASE, but(BOUND_BASE, OF_OTHERS[name])) for name in OF_OTHERS},
    "newly allowed": case(
        BOUND,
        but(setup("writer"), BINDING),
        BOUND_BASE,
        allowed("allow_agents", *at_hand("writer"), "a thread is bound"),
    ),
}


@rows(THREADS)
def test_thread(row: Case) -> None:
    row.check()


# Steps after the plan. FULL refuses by its limit, BASE permits.

BASE = limits("writer", allowAgents=["*"])
FULL = limits("writer", allowAgents=["*"], maxChildrenPerAgent=1)
SAGE = but(BASE, {"agents": {"defaults": {"subagents": {"thinking": "a sage"}}}})
SLOW = {"agents": {"defaults": {"subagents": {"thinking": "low"}}}}
CROWDED = Spawn(agent_id="writer", active_children=1)
FORKING = Spawn(active_children=1, fork=True)
ATTACHED = AttachmentsRequest(count=2, total_bytes=90)
WRONG = AttachmentsRequest(count=2, refusal=ref("attachments_invalid_name (empty)"))
ATTACHING = CROWDED.changed(attachments=ATTACHED)
CREATED = Spawn(agent_id="writer", attachments=ATTACHED)
FORK_ASSUMED = "its initial conversation can be forked"
TAKEN_OVER = allowed("active_children", *at_hand("main"), FORK_ASSUMED)
NO_FILES = unknown("the attachments: their limits changed, but the files are not on record")
RESPAWN = RespawnFacts(run_id=run_id(7), transcript_up_to=3)


def taking(values: Values = BASE, **attachments: int | bool) -> Values:
    """Return a file that permits attachments within these limits."""
    section = {"attachments": {"enabled": True, **attachments}}
    return but(values, {"tools": {"sessions_spawn": section}})


STEPS: dict[str, tuple[Spawn, str]] = {
    "no conversation": (FORKING, "context_fork"),
    "no binding": (CROWDED.changed(thread=True, mode="session"), "thread_binding"),
}


@pytest.mark.parametrize("name", STEPS)
def test_step_refuses_what_passes_the_rules_before_it(name: str) -> None:
    request, rule = STEPS[name]
    case(request, FULL, BASE, still_refused("active_children", rule)).check()
    request = request.changed(active_children=0)
    case(request, SAGE, BASE, still_refused("thinking", rule)).check()
    case(request, BASE, but(BASE, SLOW)).check()


HOOK, ANOTHER = {"url": "http://hooks.example/a"}, {"url": "http://elsewhere.example/"}
SAID = '{"message": "m", "agent": "writer"}'
UNROUTED = Spawn(
    fork=True,
    requester=below(),
    receipts=(receipt("router", output=ref(SAID), exit_code=0, outcome="injected"),),
)
ROUTED_FORK = UNROUTED.changed(
    receipts=(receipt("router", "injected", output=ref(SAID), exit_code=0, candidate="writer"),),
    candidates=(candidate("router", "writer"),),
    override_to="writer",
)
for router in (UNROUTED, ROUTED_FORK):
    router.texts.keep(SAID)


def routing(key: str | None) -> Values:
    """Return a file in which a script may propose another agent under this key."""
    own = {"contextScripts": {"run": [{**ROUTER, "agentIdOverrideKey": key}]}}
    return but(BASE, {"agents": {"list": [{"id": "main", "subagents": own}, {"id": "writer"}]}})


def preparing(values: Values, hook: Values | None = HOOK) -> Values:
    """Return a file with a preparing context engine."""
    return but(values, {"spawnlog": {"hooks": {"prepareSubagentSpawn": hook}}})


BY_ENGINE = Spawn(agent_id="writer", refused_by="context_engine")
AFTER_PLAN: dict[str, Case] = {
    "wrong files": case(
        CROWDED.changed(attachments=WRONG),
        taking(FULL),
        taking(),
        still_refused("active_children", "attachments"),
    ),
    "files judged": case(
        ATTACHING,
        taking(FULL),
        taking(),
        allowed("active_children", *at_hand("writer"), "the attachments can be written"),
    ),
    "provided conversation": case(FORKING.changed(has_transcript=True), FULL, BASE, TAKEN_OVER),
    "conversation of an earlier run": case(
        CROWDED.changed(changes={"respawn": RESPAWN}),
        FULL,
        BASE,
        allowed("active_children", *at_hand("writer"), FORK_ASSUMED),
    ),
    "too many files": case(
        CREATED,
        taking(),
        taking(maxFiles=1),
        refused("attachments", "attachments_file_count_exceeded (maxFiles=1)"),
    ),
    "bytes of a file fit": case(CREATED, taking(), taking(maxFileBytes=90)),
    "bytes of all fit": case(CREATED, taking(), taking(maxTotalBytes=90)),
    "bytes of all may not fit": case(CREATED, taking(), taking(maxTotalBytes=89), NO_FILES),
    "another agent's child may not fork": case(
        UNROUTED, routing(None), routing("agent"), refused("context_fork")
    ),
    "same agent's child may fork": case(
        ROUTED_FORK, routing("agent"), routing(None), allowed("context_fork", *TAKEN_OVER.assumed)
    ),
    "engine stays": case(BY_ENGINE, preparing(BASE), preparing(but(BASE, SLOW))),
    "another engine may refuse": case(
        Spawn(), preparing(BASE), preparing(BASE, ANOTHER), Outcome("not-replayable")
    ),
    "newly allowed with an engine": case(
        CROWDED,
        preparing(FULL),
        preparing(BASE),
        allowed("active_children", *at_hand("writer"), "hook prepareSubagentSpawn refuses nothing"),
    ),
}


@rows(AFTER_PLAN)
def test_step(row: Case) -> None:
    row.check()


# Values that Python takes for equal, and a reader of the file does not.


def is_unaffected(spawn: Spawn, then: Values, now: Values) -> bool:
    """Return True if the fast path decides it."""
    change = change_of(then, now)
    alone = differ_in_limits_alone(change, [change.then.configuration])
    return alone and is_admitted_alike(change, spawn.record(then).request)


SWITCH = {"channels": {"chat": {"threadBindings": {"spawnSessions": False}}}}
ZERO = {"channels": {"chat": {"threadBindings": {"spawnSessions": 0}}}}
TWICE = {"channels": {"Chat": {"threadBindings": {"enabled": False}}, "chat": {}}}
REVERSED = {"channels": {"chat": {}, "Chat": {"threadBindings": {"enabled": False}}}}


@pytest.mark.parametrize(("before", "after"), [(SWITCH, ZERO), (TWICE, REVERSED)])
def test_sections_are_equal_if_they_are_read_alike(before: Values, after: Values) -> None:
    then, now = (but(but(BASE, BINDING), item) for item in (before, after))
    policies = [Configuration.model_validate(item).threads_of("chat", None) for item in (then, now)]
    assert policies[0] != policies[1]
    assert BOUND.again(then, now).verdict.verdict != "same"
    assert not is_unaffected(BOUND, then, now)


TELLING: Values = {"id": "router", "uri": "/scripts/router", "argMap": {"all": "cfg"}}


@pytest.mark.parametrize(
    ("before", "after"), [(1, True), (0, False), (1, 1.0), ({"a": 1, "b": 2}, {"b": 2, "a": 1})]
)
def test_script_is_told_the_configuration_as_printed(before: object, after: object) -> None:
    scripts = {"agents": {"defaults": {"subagents": {"contextScripts": {"run": [TELLING]}}}}}
    then, now = (but(BASE, {**scripts, "other": {"x": x}}) for x in (before, after))
    assert not change_of(then, now).agent("main").scripts.is_nothing


def test_agent_without_credentials_may_have_some_under_another_runtime() -> None:
    scripts = {"contextScripts": {"run": [ROUTER]}, "allowAgents": ["*"]}
    passed_over = Spawn(
        receipts=(receipt("router", "empty", exit_code=0, error=None, candidate="editor"),),
        candidates=(candidate("router", "editor", "credentials_missing"),),
    )
    then = limits({"id": "editor", "runtime": {"type": "command", "command": ["true"]}}, **scripts)
    now = limits({"id": "editor"}, **scripts)
    assert passed_over.again(then, now).verdict.verdict != "same"
    assert not is_unaffected(passed_over, then, now)
