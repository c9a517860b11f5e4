"""Cases of families: counts, waits, and restarts."""

from collections.abc import Mapping

import pytest

from application.execution.launch import attachments_dir
from application.queries.views.run import status_of
from domain.run.facts import SpawnOptions
from domain.run.state import Run
from domain.values.refusals import Rejected
from domain.values.session_key import canonical_session_key
from tests.support.builders import run_commands as ask
from tests.support.builders.storytelling import ref
from tests.support.cases.cases import Answer, Case, Given, Runner, cases_of
from tests.support.cases.comparison import CHILD, hold
from tests.support.cases.families import CaseFamily, as_set, ended_after, milliseconds


def pending(given: Given) -> Answer:
    """Return the runs below that the announcement of a child waits for.

    The requester of the case is that child. A run is excluded (`exclude`) once it is announced.
    """
    family = CaseFamily()
    family.begin("top")
    names = [run.get("runId", run["child"]) for run in given["runs"]]
    for name, run in zip(names, given["runs"], strict=True):
        family.begin(name, "top")
        family.end(name)
        if "cleanupCompletedAt" in run or name == given.get("exclude"):
            family.announce(name)
    before = len(family.session("top").unsettled)
    for name in names:
        family.announce_what_is_due(name)
    return {"pending": before, "after_slow_cleanup": len(family.session("top").unsettled)}


def counted(given: Given) -> Answer:
    """Return how many places of the controller are taken at the end; all were at first."""
    family = CaseFamily()
    for run in given["runs"]:
        requester = run["requester"]
        family.begin(run["child"], "main" if requester == given["controller"] else requester)
    assert family.session("main").active_children == 1
    for run in sorted(given["runs"], key=lambda run: int(run["endedAt"])):
        family.end(run["child"])
    for run in given["runs"]:
        if "cleanupCompletedAt" in run:
            family.announce(run["child"])
    return {"countActive": family.session("main").active_children}


def deferred(given: Given) -> Answer:
    """Return whether an ended orchestrator is announced: it waits for an event, not for a timer."""
    family = CaseFamily()
    family.parent("top", given["pendingDescendants"])
    family.end("top")
    return {"kind": "defer-descendants" if family.announcement_waits("top") else "announce"}


def restored(given: Given) -> Answer:
    """Return the announcements after a restart, this long after the end.

    An orphan is a run whose holder is gone: it ends as interrupted, is announced, and its files are
    removed.
    """
    if "orphan" in given:
        return {"attachments_dir_exists": attachments_dir(orphaned()) is not None}
    run = given["restored"]
    expects = run["expectsCompletionMessage"]
    family = CaseFamily()
    family.begin_with("a", options=SpawnOptions(expects_completion_message=expects))
    family.end("a")
    after = family.restarted()
    after.announce_what_is_due("a", after_ms=run["endedAgoMs"])
    return {"announce_calls": len(after.announced)}


def orphaned() -> Run:
    """Return a child with files whose holder died, after a restart."""
    family = CaseFamily()
    family.spawn("a")
    epoch = family.run("a").epoch
    family.tell(
        "a",
        ask.resolve(epoch),
        ask.prepare(epoch, child_session_key=family.key("a"), steps=("attachments",)),
        ask.begin_step(epoch),
        ask.take_step(epoch, outcome="written", manifest=ref("manifest")),
        ask.create(epoch),
    )
    family.tell("a", ask.claim())
    family.tell("a", ask.start(family.run("a").epoch))
    assert attachments_dir(family.run("a")) is not None
    after = family.restarted()
    lost = ask.end(after.run("a").epoch, outcome="error", reason="interrupted")
    after.tell("a", lost)
    after.announce_what_is_due("a")
    after.tell("a", ask.confirm_undo())
    return after.run("a")


def announced(given: Given) -> Answer:
    """Return the state of an ended run with active descendants, this long after its end."""
    family = CaseFamily()
    family.parent("top", given["activeDescendants"])
    family.end("top")
    family.announce_what_is_due("top", after_ms=given["endedAgoMs"])
    return _cleanup(family, "top")


def _cleanup(family: CaseFamily, name: str) -> Answer:
    run = family.run(name)
    return {"cleanupHandled": run.inbox is not None, "cleanupCompletedAt": as_set(run.announced_at)}


def archived(given: Given) -> Answer:
    """Return when an announced run is archived; if it was replaced, the run that continues its
    session.
    """
    options = SpawnOptions(mode=given["spawnMode"], cleanup=given.get("cleanup", "keep"))
    family = CaseFamily()
    family.begin_with("a", options=options, thread=options.mode == "session")
    family.end("a")
    family.announce("a")
    if "replaced" not in given:
        return {"archiveAtMs": milliseconds(family.run("a").archive_at)}
    family.go_on("b", "a")
    family.end("b")
    family.announce("b")
    assert family.run("a").archive_at is None
    return {"archiveAtMs": milliseconds(family.run("b").archive_at)}


def persisted(given: Given) -> Answer:
    """Return the state after a restart. A failed announcement is a lost append; keys are normalized
    at the interface, because there is no file of them.
    """
    if "startedAt" in given:
        run = ended_after(given["startedAt"], given["endedAt"], given["outcome"])
        entry = {
            "startedAt": milliseconds(run.started_at),
            "endedAt": milliseconds(run.ended_at),
            "runtimeMs": run.runtime_ms,
            "status": status_of(run),
        }
        return {"childEntry": entry}
    if "announce" in given:
        return _announced_in_turn(given["announce"])
    if "cleanupHandled" not in given["file"]:
        return {name: canonical_session_key(key) for name, key in given["file"].items()}
    family = CaseFamily()
    family.begin("a")
    family.end("a")
    family.announce("a")
    after = family.restarted()
    before = len(after.announced)
    after.announce_what_is_due("a")
    return {"announce_calls": len(after.announced) - before}


def _announced_in_turn(attempts: list[bool]) -> Answer:
    family = CaseFamily()
    family.begin("a")
    family.end("a")
    answers: list[Answer] = []
    for succeeds in attempts:
        attempt = family.restarted()
        attempt.announce_what_is_due("a")
        family = attempt if succeeds else family.restarted()
        answers.append(_cleanup(family, "a"))
    return {"after_first": answers[0], "after_second": answers[1]}


def completed(given: Given) -> Answer:
    """Return the result of a run that is ended more than once."""
    family = CaseFamily()
    family.begin("a")
    epoch = family.run("a").epoch
    for text in given["texts"][: given["complete_calls"]]:
        try:
            family.tell("a", ask.end(epoch, result=ref(text)))
        except Rejected:
            continue
    texts = {ref(text).id: text for text in given["texts"]}
    result = family.run("a").result
    return {"frozenResultText": texts[result.id] if result else None}


def lived(given: Given) -> Answer:
    """Return the life of a run.

    Its label is recorded from the request on; a session is deleted by closing it; the status shows
    the outcome.
    """
    if "agent.wait" in given:
        end = given["agent.wait"]
        run = ended_after(end["startedAt"], end["endedAt"], end["status"])
        return {"outcome.status": status_of(run)}
    args = given["args"]
    family = CaseFamily()
    options = SpawnOptions(cleanup=args.get("cleanup", "keep"))
    family.begin_with("a", label=args.get("label"), options=options)
    family.end("a")
    family.announce("a")
    if family.run("a").archive_at == family.run("a").announced_at:
        family.tell("a", ask.archive())
    run, session = family.run("a"), family.session("a")
    closed = session.session_key if session.stage == "closed" else None
    return {
        CHILD: family.key("a"),
        "sessions.patch": {"key": run.child_session_key, "label": run.label},
        "sessions.delete.key": closed,
    }


def active(given: Given) -> Answer:
    """Return True if a run counts against its requester's cap, whatever its age."""
    family = CaseFamily()
    if "createdAgoMs" in given:
        family.spawn("a")
    else:
        family.parent("a", given.get("pending", 0))
    if "endedAt" in given:
        family.end("a")
    return {"active": family.counted("main") == ["a"]}


RUNNERS: Mapping[str, Runner] = {
    "lifecycle": lived,
    "list": active,
    "registry.announce": announced,
    "registry.archive": archived,
    "registry.cleanup": deferred,
    "registry.completion": completed,
    "registry.count": counted,
    "registry.descendants": pending,
    "registry.persistence": persisted,
    "registry.restore": restored,
}


@pytest.mark.parametrize("case", cases_of(RUNNERS))
def test_a_family_lives_as_the_case_says(case: Case) -> None:
    hold(RUNNERS[case.area](case.given), case)
