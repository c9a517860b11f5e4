"""What the stories of the demo are told with: asking, waiting, expecting, printing."""

import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from infrastructure.inbound.command_line.client.wait import has_reached, wait_for_run
from infrastructure.inbound.command_line.commands.run.run_records import event_columns
from infrastructure.inbound.command_line.commands.run.runs import short_id
from infrastructure.inbound.command_line.commands.run.stop import stop_and_wait
from infrastructure.inbound.command_line.commands.spawn import post_spawn
from infrastructure.inbound.command_line.display.failures import CommandFailed, RequestRefused
from infrastructure.inbound.command_line.display.output import JsonObject, print_table
from infrastructure.inbound.command_line.display.plain_text import printable_block, printable_line
from infrastructure.inbound.command_line.display.times import format_instant
from spawnlog.core.request import path_of
from spawnlog.core.stages import WaitUntil

if TYPE_CHECKING:
    from infrastructure.inbound.command_line.client.client import CommandClient
    from infrastructure.inbound.command_line.demo.gateway import DemoGateway


WAIT_SECONDS_MAX = 60.0
EVENTS_MAX = 1000
EVENT_SECONDS = 0.1
RESULT_LINES_MAX = 12


@dataclass
class DemoStage:
    """One story's place: `requester` is the session that asks in it, `gateway` posts in a chat."""

    client: "CommandClient"
    requester: str
    gateway: "DemoGateway | None" = None
    unexpected: list[str] = field(default_factory=list)

    def spawn(self, task: str, agent: str, **options: object) -> str:
        """Ask for a child; the id of its run. CommandFailed when it is refused."""
        return str(post_spawn(self.client, self._body(task, agent, options)).get("runId"))

    def spawn_together(self, tasks: list[str], agent: str, **options: object) -> list[str]:
        """Ask for a child for each task, or none; the ids of their runs, in the tasks' order."""
        together = {**self._body("", agent, options), "task": tasks, "parallel": True}
        return [str(run.get("runId")) for run in post_spawn(self.client, together).get("runs", [])]

    def spawn_from_chat(self, task: str, agent: str, channel: str, to: str) -> str:
        """Ask for a child where its result is to be posted; the id of its run."""
        body = self._body(task, agent, {})
        body["requester"] |= {"channel": channel, "to": to}
        return str(post_spawn(self.client, body).get("runId"))

    def next_post(self) -> JsonObject:
        """What is posted next in the chat."""
        if self.gateway is None:
            raise CommandFailed("there is no gateway that would post anything")
        return self.gateway.next_post()

    def refused(self, task: str, agent: str) -> JsonObject:
        """Ask for a child that will be refused; the problem that says why."""
        try:
            accepted = post_spawn(self.client, self._body(task, agent, {}))
        except RequestRefused as refusal:
            return dict(refusal.problem or {})
        raise CommandFailed(f"run {accepted.get('runId')} was accepted, and should not have been")

    def stop_all(self, reason: str) -> None:
        """Stop all that the session has at work, and wait until it is over."""
        listing = self.client.items(
            "/v1/runs", {"requester": self.requester, "status": "running"}, limit=EVENTS_MAX
        )
        for run in listing.items:
            self.client.post(
                path_of("runs", run["runId"], "stop"),
                {"reason": reason},
                idempotency_key=str(uuid.uuid4()),
            )
        for run in listing.items:
            self.expect(
                "the outcome of a sleeper", self.wait(run["runId"]).get("outcome"), "stopped"
            )

    def find_refusal(self, rule: str) -> JsonObject:
        """Print the first position at which this rule refused the session; what was found there.
        CommandFailed when there is none."""
        query: dict[str, str | int | None] = {"rule": rule, "session": self.requester, "limit": 1}
        found = list(self.client.get("/v1/events/find", query).value.get("items") or ())
        if not found:
            raise CommandFailed(f"no refusal by {rule} was found")
        print(
            f"\n  the first refusal by {rule} is at position {found[0].get('position')};"
            f" that was at {format_instant(found[0].get('recordedAt'))}"
        )
        return dict(found[0])

    def running_at(self, position: object) -> int:
        """Print what the session had at work at a position; how many."""
        query: dict[str, str | int | None] = {
            "requester": self.requester,
            "status": "running",
            "at": f"pos:{position}",
        }
        runs = self.client.items("/v1/runs", query, limit=EVENTS_MAX).items
        names = ", ".join(printable_line(run.get("label")) for run in runs)
        print(f"  at work then: {names}")
        return len(runs)

    def explain(self, run_id: str, rule: str) -> JsonObject:
        """Print what a rule compared; its explanation. CommandFailed when it is not there."""
        explanation = self.client.get(path_of("runs", run_id, "explain")).value
        for one in explanation.get("decisions") or ():
            if one.get("rule") == rule:
                print(f"  why: {rule} {one.get('result')}: {printable_line(one.get('text'), 200)}")
                return dict(one)
        raise CommandFailed(f"{rule} is not among the rules that are explained")

    def what_if(self, pointer: str, value: object) -> JsonObject:
        """Decide what the session asked for again with one value changed; how many decisions came
        to which verdict, which is printed."""
        body = {
            "patch": [{"op": "replace", "path": pointer, "value": value}],
            "filter": {"requester": self.requester},
        }
        lines = list(self.client.lines("/v1/what-if", body))
        counts = dict((lines[-1].get("totals") or {}).get("byVerdict") or {}) if lines else {}
        shown = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
        print(f"  what if {pointer} were {value}: {shown}")
        return counts

    def respawn(self, run_id: str, **changes: object) -> str:
        """Spawn anew from a run, with changes; the id of the new one."""
        made = self.client.post(
            path_of("runs", run_id, "respawn"),
            {"changes": changes},
            idempotency_key=str(uuid.uuid4()),
        )
        return str(made.value.get("runId"))

    def wait(self, run_id: str, until: WaitUntil = "announced") -> JsonObject:
        """The run at that point of its life. CommandFailed when it does not come to it."""
        run = wait_for_run(self.client, run_id, until=until, seconds_max=WAIT_SECONDS_MAX)
        if not has_reached(run, until):
            raise CommandFailed(f"run {run_id} is still {run.get('stage')}, not {until}")
        return run

    def stop(self, run_id: str, reason: str) -> None:
        """Stop a run."""
        stop_and_wait(self.client, run_id, reason)

    def steer(self, run_id: str, message: str) -> str:
        """Tell a run at work to do something else; the id of the run that does."""
        path, body = path_of("runs", run_id, "messages"), {"message": message, "mode": "steer"}
        taken = self.client.post(path, body, idempotency_key=str(uuid.uuid4())).value
        next_id = str(taken.get("runId"))
        # The run at work is over before the next one is there.
        wait_for_run(self.client, run_id, until="announced", seconds_max=WAIT_SECONDS_MAX)
        return next_id

    def events(self, run_id: str) -> list[str]:
        """Print the events of a run; their types, in order."""
        listing = self.client.items(path_of("runs", run_id, "events"), {}, limit=EVENTS_MAX)
        run = self.client.get(path_of("runs", run_id)).value
        label = run.get("label")
        print(
            f"\n  run {short_id(run_id)}{f' ({printable_line(label)})' if label else ''}: agent "
            f"{printable_line(run.get('agentId'))}, {printable_line(run.get('status'))}"
        )
        print_table(listing.items, event_columns(listing))
        return [str(event.get("type")) for event in listing.items]

    def tools_used(self, run_id: str) -> list[str]:
        """The tools that a run called, in order, from its transcript."""
        answer = self.client.get(path_of("runs", run_id, "transcript"), {"tools": "true"})
        entries = answer.value.get("items") or []
        return [str(one["body"].get("name")) for one in entries if one.get("kind") == "tool"]

    def wait_for_event(self, run_id: str, event_type: str) -> None:
        """Wait until such an event of a run is on record. CommandFailed when it does not come."""
        end = time.monotonic() + WAIT_SECONDS_MAX
        while time.monotonic() < end:
            listing = self.client.items(path_of("runs", run_id, "events"), {}, limit=EVENTS_MAX)
            if any(event.get("type") == event_type for event in listing.items):
                return
            time.sleep(EVENT_SECONDS)
        raise CommandFailed(f"run {run_id} has no event {event_type}")

    def show(self, heading: str, text: object) -> None:
        """Print what a run gave, its first lines."""
        lines = printable_block(str(text or "")).strip().split("\n")
        shown = lines[:RESULT_LINES_MAX]
        if len(lines) > len(shown):
            shown.append("…")
        print(f"  {heading}: " + "\n    ".join(shown))

    def expect(self, what: str, found: object, expected: object) -> None:
        """Compare; a difference is told and makes the demo fail."""
        if found != expected:
            self._differs(f"{what} is {found!r}, and should be {expected!r}")

    def expect_in(self, what: str, text: object, fragment: str) -> None:
        """The fragment must stand in the text."""
        if fragment not in str(text):
            self._differs(f"{what} should hold {fragment!r}")

    def expect_events(self, found: Iterable[str], *expected: str) -> None:
        """These events must have happened, in this order; others may stand between them."""
        rest = iter(found)
        for event in expected:
            if event not in rest:
                self._differs(f"the events should hold {event}, in the order {', '.join(expected)}")
                return

    def _body(self, task: str, agent: str, options: dict[str, object]) -> JsonObject:
        requester = {"sessionKey": self.requester}
        return {"requester": requester, "task": task, "agentId": agent, **options}

    def _differs(self, text: str) -> None:
        self.unexpected.append(text)
        print(f"  NOT AS EXPECTED: {printable_line(text, 1000)}")
