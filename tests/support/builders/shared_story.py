"""Those of a family that wait for each other, and that share something, told in a real log."""

from uuid_utils.compat import uuid7

from application.log.envelope import Provenance
from application.log.event_log import Decision, Submission, World
from application.log.texts import TextStore
from domain.run.commands import SettleDependencies
from domain.run.facts import Dependency
from domain.run.plan_facts import PreambleSizes
from domain.session.decide import ChangeSharedContext
from domain.session.decide import decide as decide_session
from domain.spawn.request import SharedContextInput
from domain.values.record import session_stream
from domain.values.shared_values import SharedChange, SharedKey
from tests.support.builders import run_commands as ask
from tests.support.builders.logged_family import LANE, LoggedFamily, content_key_of
from tests.support.builders.storytelling import ref

SIZES = PreambleSizes(
    given_characters=9, given_bytes=9, kept_characters=9, kept_bytes=9, characters_max=4000
)


async def tell_of_waiting(family: LoggedFamily, target: str) -> None:
    """One is queued when the target, which executes, has ended; one ends as it failed."""
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
    """A spawn shares something with its family, the owner takes it away, and a child has it."""
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
    """The owner of the root session, of which texts are kept, shares this no more."""
    session = family.sessions[family.root]
    stream, content_key = session_stream(family.root), content_key_of(session.session_id)

    def decide(world: World) -> Decision[None]:
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
