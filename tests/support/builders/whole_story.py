"""A story with every type of event, recorded in a real log."""

from typing import Any

from uuid_utils.compat import uuid7

from application.log.envelope import Provenance
from application.log.event_log import ContentKey, Decision, DecisionContext, Submission
from application.log.texts import TextStore
from domain.event_types import ConfigurationActivated
from domain.run.commands import SettleDependencies
from domain.run.facts import (
    HOOK_ORDER,
    Candidate,
    Dependency,
    ForkFacts,
    RespawnFacts,
    SpawnOptions,
    StepName,
)
from domain.run.plan_facts import PreambleSizes
from domain.session.decide import ChangePreamble, ChangeSharedContext, ProvideTranscript
from domain.session.decide import decide as decide_session
from domain.session.events import ToolRefused
from domain.spawn.request import SharedContextInput
from domain.values.record import CONFIG_STREAM, session_stream
from domain.values.shared_values import SharedChange, SharedKey
from tests.support.builders import continued_runs as continued
from tests.support.builders import effects
from tests.support.builders import run_commands as ask
from tests.support.builders.continued_runs import close
from tests.support.builders.logged_family import LANE, LoggedFamily, content_key_of
from tests.support.builders.logged_messages import finish, go_on, send
from tests.support.builders.storytelling import ref, run_id
from tests.support.memory.served_log import ServedLog

# Members of a family with dependencies and shared context, in a real log.

SIZES = PreambleSizes(
    given_characters=9, given_bytes=9, kept_characters=9, kept_bytes=9, characters_max=4000
)


async def tell_of_waiting(family: LoggedFamily, target: str) -> None:
    """Let one run be queued when the running target ends, and another end because it failed."""
    for name in ("after", "in vain"):
        dependency = Dependency(run_id=family.id(target), name=target, via="dependsOn")
        await family.spawn(name, dependencies=(dependency,))
        await family.create(name, preamble=SIZES)
    await family.tell("in vain", ask.stop())
    await family.end(target)
    await family.announce(target)
    await family.tell("after", SettleDependencies(lane=LANE))
    await family.spawn("behind", dependencies=(_on(family, "after"),))
    await family.create("behind")
    await family.tell("after", ask.stop())
    await family.announce("after")
    await family.tell(
        "behind",
        SettleDependencies(lane=LANE, culprit=family.id("after"), error=ref("it was stopped")),
    )


async def tell_of_sharing(family: LoggedFamily) -> None:
    """Let a spawn share a key with its family, the owner remove it, and a child receive it."""
    await family.spawn("sharing", shared=SharedContextInput(values=(("goal", '"win"'),)))
    change = SharedChange(key="goal", value=ref('"win"'))
    await family.create("sharing", shared=(change,))
    claimed = await family.tell("sharing", ask.claim())
    key = SharedKey(
        key="goal",
        value=ref('"win"'),
        session_key=family.root,
        position=claimed.position,
        run_id=family.id("sharing"),
    )
    start = ask.start(
        family.run("sharing").epoch,
        shared_context_position=claimed.position,
        shared_context=(key,),
        inherits=True,
    )
    await family.tell("sharing", start)
    await _take_away(family, "goal")


async def _take_away(family: LoggedFamily, key: str) -> None:
    """Let the owner of the root session, whose texts are stored, stop sharing a key."""
    session = family.sessions[family.root]
    stream, content_key = session_stream(family.root), content_key_of(session.session_id)

    def decide(world: DecisionContext) -> Decision[None]:
        text_store = TextStore(session.session_id, content_key, uuid7)
        changes = (
            SharedChange(key=key),
            SharedChange(key="rule", value=text_store.store("shared", '"be kind"')),
        )
        command = ChangeSharedContext(changes, cause="patch", by=family.root)
        events = decide_session(world.sessions[family.root], command)
        return Decision(None, [(stream, event) for event in events], text_store.contents)

    source = Provenance(correlation=family.root, config_revision=1)
    appended = await family.log.submit(
        Submission(command_id=uuid7(), streams=(stream,), decide=decide, provenance=source)
    )
    family.heard(appended)


def _on(family: LoggedFamily, name: str) -> Dependency:
    return Dependency(run_id=family.id(name), name=name, via="chainAfter", require="success")


async def activate(running: ServedLog, text: str = "{}") -> int:
    """Activate a configuration. Return its revision."""
    owner = running.log.log_id

    def decide(world: DecisionContext) -> Decision[int]:
        text_store = TextStore(owner, owner.bytes * 2, uuid7)
        revision = world.config_version + 1
        event = ConfigurationActivated(
            revision=revision,
            content=text_store.store("configuration", text),
            source="built-in",
            activated_by="system",
        )
        keys = (ContentKey(owner, owner.bytes * 2),)
        return Decision(revision, ((CONFIG_STREAM, event),), text_store.contents, keys)

    appended = await running.log.submit(
        Submission(
            command_id=uuid7(),
            streams=(CONFIG_STREAM,),
            decide=decide,
            provenance=Provenance(config_revision=1),
        )
    )
    return appended.result


async def tell_everything(running: ServedLog, family: LoggedFamily | None = None) -> LoggedFamily:
    """Record every type of event, in the longest possible lives."""
    await activate(running)
    family = family or LoggedFamily(running.log, max_children=4)
    await _an_orchestrator_that_ends_before_those_below(family)
    await _one_that_is_taken_over_and_becomes_another_agent(family)
    await _those_that_are_refused_or_stopped(family)
    await _one_whose_files_are_removed_when_it_is_announced(family)
    await _one_whose_steps_are_undone(family)
    await _one_that_others_are_told_of(family)
    await _a_session_that_goes_on_until_it_is_closed(family)
    await _one_that_yields_and_cannot_go_on(family)
    await _one_whose_messages_are_dropped(family)
    await _one_that_is_sent_to_a_webhook(family)
    await _one_that_is_made_from_another(family)
    await _those_that_wait_and_share(family)
    await activate(running, '{"agents": {}}')
    return family


async def _an_orchestrator_that_ends_before_those_below(family: LoggedFamily) -> None:
    await family.begin("scout")
    await family.begin("below", "scout")
    await family.spawn("unprepared", "scout")
    await family.end("scout")
    run = family.run("unprepared")
    await family.tell(
        "unprepared", ask.refuse(run.epoch, inputs={"wanted": "gpt", "limit": None, "tries": 2})
    )
    await family.tell("below", ask.stop())
    await family.end("below", outcome="stopped", reason="stopped")
    await family.announce("below")
    await family.announce("scout")
    await family.tell("scout", ask.acknowledge())
    await family.tell("scout", ask.archive(transcript_path="/x/scout.jsonl"))


async def _one_that_is_taken_over_and_becomes_another_agent(family: LoggedFamily) -> None:
    await family.spawn("late", options=SpawnOptions(run_timeout_seconds=1.5, cleanup="delete"))
    await family.tell("late", ask.resume(family.run("late").epoch))
    candidate = Candidate(script_id="router", priority=1.5, agent_id="steward", verdict="taken")
    await family.resolve("late", candidates=(candidate,), override_to="steward")
    await family.create("late")
    await family.tell("late", ask.claim())
    await family.tell("late", ask.claim(holder="server-2", lost_epoch=family.run("late").epoch))
    await family.start("late")
    await family.end("late", outcome="error", reason="exit", exit_code=3, error=ref("broken"))
    await family.announce("late")


async def _those_that_are_refused_or_stopped(family: LoggedFamily) -> None:
    await family.spawn("forbidden", target_agent_id="stranger", agent_id_argument="stranger")
    await family.spawn("nonsense", target_agent_id=None, agent_id_argument="!!")
    await family.queue("stopped")
    await family.tell("stopped", ask.stop(by_requester=True))
    await family.spawn("told later")
    await family.tell(
        "told later", ask.refuse(family.run("told later").epoch, announcement=ref("it was refused"))
    )
    await family.tell("told later", ask.acknowledge())
    await family.queue("waiting")


async def _one_whose_files_are_removed_when_it_is_announced(family: LoggedFamily) -> None:
    await family.furnish("furnished")
    await family.tell("furnished", ask.resume(family.run("furnished").epoch))
    epoch = family.run("furnished").epoch
    await family.tell("furnished", ask.begin_step(epoch))
    files = {"manifest": ref("manifest"), "file_count": 2, "total_bytes": 9, "can_undo": True}
    await family.tell("furnished", ask.take_step(epoch, outcome="written", **files))
    await family.create("furnished")
    await family.execute("furnished")
    await family.end("furnished")
    await family.announce("furnished")
    await family.tell("furnished", ask.note_undo_failure())
    await family.tell("furnished", ask.confirm_undo())


async def _one_whose_steps_are_undone(family: LoggedFamily) -> None:
    await family.furnish("unfurnished")
    await family.tell("unfurnished", ask.refuse(family.run("unfurnished").epoch))
    await family.tell("unfurnished", ask.confirm_undo(how="nothing_there"))


async def _one_that_others_are_told_of(family: LoggedFamily) -> None:
    await _provide_transcript(family, '{"kind": "message", "text": "look into it"}\n')
    await _bind("bound", family)
    await family.create("bound", hooks=HOOK_ORDER)
    await family.tell("bound", effects.confirm_hook())
    await family.execute("bound")
    await family.end("bound")
    await family.tell("bound", ask.announce(origin=ref("origin")))
    await family.tell("bound", effects.note_hook_failure("subagentEnded"))
    await family.tell(
        "bound", effects.note_hook_failure("subagentEnded", attempt=2, attempts_max=2)
    )


async def _a_session_that_goes_on_until_it_is_closed(family: LoggedFamily) -> None:
    await family.begin("talking")
    await family.begin("heard", "talking")
    await finish(family, "heard", "talking")
    await go_on(family, "second", "talking")
    await send(family, "refused message", "talking", max_children=0)
    await send(family, "third", "talking")
    await family.tell("third", close())
    await family.execute("third")
    await finish(family, "third")
    for name in ("third", "second", "talking"):
        await family.tell(name, ask.archive(transcript_path=f"/x/{name}.jsonl"))
    await go_on(family, "heard again", "heard")


async def _one_that_yields_and_cannot_go_on(family: LoggedFamily) -> None:
    await family.begin("boss")
    await family.begin("helper", "boss")
    await family.tell("boss", continued.yield_run())
    await family.end("boss", reason="yielded")
    await family.end("helper")
    await family.announce("helper")
    await family.tell("boss", continued.fail(79_001))
    await family.announce("boss")


async def _one_whose_messages_are_dropped(family: LoggedFamily) -> None:
    await family.begin("other")
    await family.tell("other", continued.queue(run_id=run_id(79_002)))
    await _write_preamble(family, "other")
    await family.tell("other", ask.stop())
    await family.end("other", outcome="stopped", reason="stopped")
    await family.announce("other")


async def _one_that_is_sent_to_a_webhook(family: LoggedFamily) -> None:
    await family.begin("sent")
    await family.end("sent")
    await family.tell("sent", ask.announce(webhooks=("gateway",)))
    await family.tell("sent", effects.failed(status_code=410, refused=True))
    await family.tell("sent", effects.redrive())


async def _write_preamble(family: LoggedFamily, name: str) -> None:
    """Write a new preamble for a session that may not stop others."""
    key, session_id = family.key(name), family.session_id(name)

    def decide(world: DecisionContext) -> Decision[None]:
        text_store = TextStore(session_id, content_key_of(session_id), uuid7)
        command = ChangePreamble(text_store.store("preamble", "It rains."), "admin")
        events = decide_session(world.sessions[key], command)
        refused = ToolRefused(tool="subagents", by="child")
        changes = [(session_stream(key), event) for event in (*events, refused)]
        return Decision(None, changes, text_store.contents)

    await family.log.submit(
        Submission(
            command_id=uuid7(),
            streams=(session_stream(key),),
            decide=decide,
            provenance=Provenance(correlation=family.root, config_revision=1),
        )
    )


async def _one_that_is_made_from_another(family: LoggedFamily) -> None:
    respawn = RespawnFacts(
        run_id=family.run("forbidden").run_id, replaced=("task",), scripts="recorded"
    )
    stranger: dict[str, Any] = {"target_agent_id": "stranger", "agent_id_argument": "stranger"}
    await family.spawn("again", respawn=respawn, **stranger)


async def _those_that_wait_and_share(family: LoggedFamily) -> None:
    await family.begin("first")
    await tell_of_waiting(family, "first")
    await tell_of_sharing(family)


async def _provide_transcript(family: LoggedFamily, text: str) -> None:
    """Upload a transcript of the root session, stored as its own."""
    session = family.sessions[family.root]
    stream, key = session_stream(family.root), content_key_of(session.session_id)

    def decide(world: DecisionContext) -> Decision[None]:
        text_store = TextStore(session.session_id, key, uuid7)
        command = ProvideTranscript(1, 9, text_store.store("transcript", text), family.root)
        events = decide_session(world.sessions[family.root], command)
        changes = [(stream, event) for event in events]
        return Decision(None, changes, text_store.contents, (ContentKey(session.session_id, key),))

    source = Provenance(correlation=family.root, config_revision=1)
    await family.log.submit(
        Submission(command_id=uuid7(), streams=(stream,), decide=decide, provenance=source)
    )


async def _bind(name: str, family: LoggedFamily) -> None:
    """Bind a thread to a child that begins with a conversation, after a call of the context
    engine.
    """
    session_id = family.sessions[family.root].session_id
    fork = ForkFacts(source_session_id=session_id, position=1, entries=1, tokens=9, mode="fork")
    await family.spawn(name)
    epoch = family.run(name).epoch
    steps: tuple[StepName, ...] = ("thread_binding", "context_fork", "context_engine")
    key = family.key(name)
    await family.tell(
        name, ask.resolve(epoch), ask.prepare(epoch, child_session_key=key, steps=steps)
    )
    outcomes: dict[StepName, dict[str, Any]] = {
        "thread_binding": {"outcome": "bound", "origin": ref("origin"), "can_undo": True},
        "context_fork": {"outcome": "forked", "fork": fork},
        "context_engine": {"outcome": "prepared", "token": ref("token"), "can_undo": True},
    }
    for step, made in outcomes.items():
        await family.tell(name, ask.begin_step(epoch, step=step, root=None, relative=None))
        await family.tell(name, ask.take_step(epoch, step=step, **made))
