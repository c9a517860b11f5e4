"""The stories of the demo: what may become of a spawn, each shown on a real run.

They need the agents of `examples/spawnlog.json5`; each checks what it shows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from infrastructure.inbound.command_line.commands.run.runs import short_id
from infrastructure.inbound.command_line.demo.gateway import CHANNEL
from infrastructure.inbound.command_line.demo.stage import DemoStage
from infrastructure.inbound.command_line.display.output import JsonObject
from infrastructure.inbound.command_line.display.plain_text import printable_line

CHILDREN_MAX = 5
"""`maxChildrenPerAgent` of the examples."""


_WHOLE_LIFE = (
    "SpawnRequested",
    "ScriptsResolved",
    "SessionCreated",
    "RunQueued",
    "RunStarted",
    "RunEnded",
    "RunAnnounced",
)


@dataclass(frozen=True, slots=True)
class Story:
    """A story: its title, what it shows, and how it is played with the examples there."""

    title: str
    about: str
    play: Callable[[DemoStage, Path], None]


def _play_plain(stage: DemoStage, examples: Path) -> None:
    file = examples / "data" / "harbour.txt"
    content = file.read_bytes()
    run = stage.wait(
        stage.spawn("Count the words of data/harbour.txt", "counter", label="harbour-words")
    )
    stage.expect_events(stage.events(run["runId"]), *_WHOLE_LIFE)
    stage.show("result", run.get("resultText"))
    stage.expect("the outcome", run.get("outcome"), "success")
    lines, words = content.count(b"\n"), len(content.split())
    counted = f"{lines} lines, {words} words, {len(content)} bytes"
    stage.expect_in("the result", run.get("resultText"), counted)


def _play_alias(stage: DemoStage, examples: Path) -> None:
    parent = (examples / "identities" / "steward" / "parent").read_text("utf-8").strip()
    charter = (examples / "identities" / "steward" / "charter.md").read_text("utf-8").strip()
    run = stage.wait(stage.spawn("Say who you are", "steward"))
    events = stage.events(run["runId"])
    stage.expect_events(events, "ScriptsResolved", "AgentOverridden", "SessionCreated", "RunEnded")
    stage.show("result", run.get("resultText"))
    stage.expect("the agent that was asked for", run.get("requestedAgentId"), "steward")
    stage.expect("the agent that ran", run.get("agentId"), parent)
    stage.expect("the outcome", run.get("outcome"), "success")
    stage.expect_in("the result", run.get("resultText"), charter.splitlines()[0])


def _play_fan_out(stage: DemoStage, _examples: Path) -> None:
    tasks = {
        "counter": ("Count the words of data/tides.txt", "data/tides.txt:"),
        "searcher": ('Search for "low tide" in data', '"low tide"'),
        "summer": ("Sum amount of data/sales.csv where region is north", "amount of"),
    }
    ids = {agent: stage.spawn(task, agent) for agent, (task, _) in tasks.items()}
    for agent, run_id in ids.items():
        run = stage.wait(run_id)
        stage.expect_events(stage.events(run_id), *_WHOLE_LIFE)
        stage.show("result", run.get("resultText"))
        stage.expect(f"the outcome of {agent}", run.get("outcome"), "success")
        stage.expect_in(f"the result of {agent}", run.get("resultText"), tasks[agent][1])


def _play_together(stage: DemoStage, _examples: Path) -> None:
    files = ("data/harbour.txt", "data/tides.txt")
    tasks = [f"Count the words of {file}" for file in files]
    goal = "which text is longer"
    counts = stage.spawn_together(tasks, "counter", label="count", sharedContext={"goal": goal})
    results = {"$count-1": "reference", "$count-2": "reference"}
    last = stage.spawn("Tell what is known", "main", label="summary", sharedContext=results)
    run = stage.wait(last)
    for count, file in zip(counts, files, strict=True):
        result = stage.wait(count).get("resultText")
        stage.expect_in("the result of a count", result, file)
        stage.expect_in("the result of the last", run.get("resultText"), str(result).strip())
    stage.expect_events(
        stage.events(last), "SessionCreated", "DependencyMet", "RunQueued", "RunEnded"
    )
    stage.show("result", run.get("resultText"))
    stage.expect_in("the result of the last", run.get("resultText"), goal)


def _play_failing(stage: DemoStage, _examples: Path) -> None:
    run = stage.wait(stage.spawn("Open the harbour", "failing"))
    stage.expect_events(stage.events(run["runId"]), "RunStarted", "RunEnded", "RunAnnounced")
    stage.show("error", run.get("error"))
    stage.expect("the outcome", run.get("outcome"), "error")
    stage.expect_in("the error", run.get("error"), "the harbour is closed")


def _play_timeout(stage: DemoStage, _examples: Path) -> None:
    run = stage.wait(stage.spawn("Sleep for 60 seconds", "sleeper", runTimeoutSeconds=1))
    stage.expect_events(stage.events(run["runId"]), "RunStarted", "RunEnded", "RunAnnounced")
    stage.expect("the outcome", run.get("outcome"), "timeout")


def _play_stopped(stage: DemoStage, _examples: Path) -> None:
    run_id = stage.spawn("Sleep for 60 seconds", "sleeper")
    stage.wait(run_id, "started")
    stage.stop(run_id, "the demo has seen enough")
    run = stage.wait(run_id)
    stage.expect_events(stage.events(run_id), "RunStarted", "RunEnded", "RunAnnounced")
    stage.expect("the outcome", run.get("outcome"), "stopped")


def _play_yield(stage: DemoStage, _examples: Path) -> None:
    files = ("data/harbour.txt", "data/tides.txt")
    task = "\n".join(f"Ask counter: Count the words of {file}" for file in files)
    first = stage.wait(stage.spawn(task, "editor", label="edition"))
    stage.expect_events(
        stage.events(first["runId"]),
        *("RunStarted", "YieldRequested", "RunEnded", "ChildrenReported", "RunContinued"),
    )
    tools = stage.tools_used(first["runId"])
    stage.show("tools it used", ", ".join(tools))
    stage.expect("the tools it used", tools, ["sessions_spawn", "sessions_yield"])
    print("\n  it was not announced; its session was woken by what its sub-agents reported:")
    last = stage.wait(str(first.get("continuedBy")))
    stage.expect_events(stage.events(last["runId"]), "MessageReceived", "RunEnded", "RunAnnounced")
    stage.show("result", last.get("resultText"))
    stage.expect("why it went on", last.get("cause"), "wake")
    for file in files:
        stage.expect_in("the result", last.get("resultText"), file)


def _play_steer(stage: DemoStage, _examples: Path) -> None:
    run_id = stage.spawn("Sleep for 60 seconds", "sleeper", label="steered")
    stage.wait(run_id, "started")
    next_id = stage.steer(run_id, "Sleep for 0 seconds")
    first = stage.wait(run_id)
    stage.expect_events(stage.events(run_id), "RunStarted", "MessageQueued", "RunEnded")
    print("\n  the run at work was ended for it; the message is the next one, in its place:")
    last = stage.wait(next_id)
    stage.expect_events(stage.events(next_id), "MessageReceived", "RunEnded", "RunAnnounced")
    stage.show("result", last.get("resultText"))
    stage.expect("what was announced of the first", _announced(first), "skipped")
    stage.expect("the outcome of the last", last.get("outcome"), "success")


def _play_webhook(stage: DemoStage, _examples: Path) -> None:
    task = "Count the words of data/tides.txt"
    run = stage.wait(stage.spawn_from_chat(task, "counter", CHANNEL, "channel:7"))
    post = stage.next_post()
    stage.show("posted to " + printable_line(post.get("to")), post.get("text"))
    stage.expect("where it was posted", post.get("to"), "channel:7")
    stage.expect_in("the post", post.get("text"), str(run.get("resultText")))
    stage.wait_for_event(run["runId"], "DeliveryAttempted")
    stage.expect_events(stage.events(run["runId"]), "RunAnnounced", "DeliveryAttempted")


def _announced(run: JsonObject) -> object:
    return (run.get("announcement") or {}).get("state")


def _play_cap(stage: DemoStage, _examples: Path) -> None:
    sleeping = [stage.spawn("Sleep for 60 seconds", "sleeper") for _ in range(CHILDREN_MAX)]
    print(f"\n  {len(sleeping)} children sleep; the session asks for one more")
    problem = stage.refused("Sleep for 60 seconds", "sleeper")
    run_id = str(problem.get("runId"))
    stage.expect_events(stage.events(run_id), "SpawnRequested", "SpawnRefused")
    stage.show("refused", printable_line(problem.get("detail"), 500))
    stage.expect("the code", problem.get("code"), "spawn_forbidden")
    stage.expect("the rule", problem.get("rule"), "active_children")
    for sleeper in sleeping:
        stage.stop(sleeper, "the demo has seen enough")
    for sleeper in sleeping:
        stage.expect("the outcome of a sleeper", stage.wait(sleeper).get("outcome"), "stopped")
    after = stage.wait(stage.spawn("Count the words of data/tides.txt", "counter"))
    print("\n  the five are stopped, and their places are free again:")
    stage.expect_events(stage.events(after["runId"]), *_WHOLE_LIFE)


def _play_looking_back(stage: DemoStage, _examples: Path) -> None:
    cap = "/agents/defaults/subagents/maxChildrenPerAgent"
    sleeping = ["Sleep for 60 seconds" for _ in range(CHILDREN_MAX)]
    for sleeper in stage.spawn_together(sleeping, "sleeper", label="nap"):
        stage.wait(sleeper, "started")
    problem = stage.refused("Count the words of data/tides.txt", "counter")
    run_id = str(problem.get("runId"))
    stage.stop_all("the demo has seen enough")
    print(f"\n  it is over; the record knows how it was when run {short_id(run_id)} was refused:")
    found = stage.find_refusal("active_children")
    stage.expect("the run that was found", found.get("runId"), run_id)
    at_work = stage.running_at(found.get("position"))
    stage.expect("how many were at work then", at_work, CHILDREN_MAX)
    stage.expect("the rule", stage.explain(run_id, "active_children").get("result"), "refused")
    counts = stage.what_if(cap, CHILDREN_MAX + 1)
    stage.expect("what would be permitted", counts.get("newly-allowed"), 1)
    stage.expect("what would be refused", counts.get("newly-refused"), 0)
    anew = stage.wait(stage.respawn(run_id, label="once-more"))
    print("\n  the same is asked for again, now that there is room:")
    stage.expect_events(stage.events(anew["runId"]), *_WHOLE_LIFE)
    stage.expect("the run that it was made from", anew.get("respawnedFrom"), run_id)
    stage.show("result", anew.get("resultText"))
    stage.expect("the outcome", anew.get("outcome"), "success")


def _play_deleted(stage: DemoStage, _examples: Path) -> None:
    run_id = stage.spawn("Count the words of data/tides.txt", "counter", cleanup="delete")
    run = stage.wait(run_id, "archived")
    stage.expect_events(stage.events(run_id), *_WHOLE_LIFE, "RunArchived")
    stage.show("transcript", run.get("transcriptPath"))
    stage.expect("the stage", run.get("stage"), "archived")
    stage.expect_in("the path of the transcript", run.get("transcriptPath"), ".deleted.")


STORIES = (
    Story("A plain run", "Asked for, prepared, queued, started, ended, announced.", _play_plain),
    Story(
        "An alias",
        "No agent is called steward: a context script knows whose name it is and brings the "
        "charter, and the parent agent runs.",
        _play_alias,
    ),
    Story(
        "Three at once",
        "One session asks for three children; they run side by side.",
        _play_fan_out,
    ),
    Story(
        "Two together, and one that waits",
        "Two tasks of one request share a goal; a third run waits for both and is given what "
        "they found.",
        _play_together,
    ),
    Story(
        "A run that fails", "The outcome comes from the exit status, not from words.", _play_failing
    ),
    Story(
        "A run that takes too long",
        "Its time is one second; then nothing of it is left.",
        _play_timeout,
    ),
    Story(
        "An orchestrator with the tools of a model",
        "With nothing else it hands its task out and ends its turn; what its sub-agents report "
        "wakes it.",
        _play_yield,
    ),
    Story(
        "A run that is steered",
        "It is told to do something else: the message goes on in its place.",
        _play_steer,
    ),
    Story(
        "A result that is posted in a chat",
        "A webhook sends it to a gateway, signed; the gateway posts it where it was asked for.",
        _play_webhook,
    ),
    Story("A run that is stopped", "Stopped by hand, with a reason on record.", _play_stopped),
    Story(
        "A refusal",
        "A session may have five active children; the sixth is refused, and that is recorded too.",
        _play_cap,
    ),
    Story(
        "Looking back",
        "When was the cap hit, what was at work then, and what if it had been larger? What was "
        "refused is spawned anew.",
        _play_looking_back,
    ),
    Story(
        "Archived at once",
        'With cleanup "delete" the run is archived as soon as it is announced.',
        _play_deleted,
    ),
)
