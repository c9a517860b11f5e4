"""What waits for what, in plain sets: it looks at the whole tree each time, and knows no events."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

State = Literal["prepared", "waiting", "queued", "started", "ended", "announced", "refused"]
Wish = tuple[str, bool]
"""The name of a run, and whether it has to succeed."""


@dataclass
class Conversation:
    """A session: that of its requester, its runs, and the sessions that it has spawned."""

    requester: "Conversation | None"
    nodes: "list[Node]" = field(default_factory=list)
    children: "list[Conversation]" = field(default_factory=list)

    @property
    def newest(self) -> "Node":
        """Its newest run: all others are settled."""
        return self.nodes[-1]

    @property
    def at_work(self) -> "list[Node]":
        """The runs below that an announcement of its own run waits for."""
        return [one.newest for one in self.children if not one.newest.is_settled]

    @property
    def waits_for_children(self) -> "Iterator[Conversation]":
        """Itself and the sessions above that end after it, if a child of it is at work."""
        session: Conversation | None = self
        while session is not None and not session.newest.is_settled:
            yield session
            session = session.requester


@dataclass
class Node:
    """A run. `parent` is the run that its requester's session was at when it was asked for, `unmet`
    are those of its wishes that are not done yet, as far as it was looked. `is_yielded` is whether
    its session is to go on in its place, `was_done` whether it was done when a session below it
    went on: it stays so."""

    name: str
    parent: "Node | None"
    session: Conversation
    wishes: Sequence[Wish]
    state: State = "prepared"
    outcome: str | None = None
    unmet: set[str] = field(default_factory=set)
    is_yielded: bool = False
    was_done: bool = False

    @property
    def is_newest(self) -> bool:
        """Whether its session has no later run."""
        return self.session.newest is self

    @property
    def is_settled(self) -> bool:
        """Whether nothing is to be done for it any more."""
        return self.state in ("announced", "refused")

    @property
    def is_done(self) -> bool:
        """Whether it is over, and all below it are settled."""
        is_over = self.state == "ended" and not self.session.at_work
        return self.is_settled or self.was_done or is_over

    @property
    def above(self) -> "Iterator[Node]":
        """Its parent, the parent of that, and so on."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent


class Model:
    """All runs of one tree, by name."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}

    def judge(self, parent: Node | None, wishes: Sequence[Wish]) -> str | None:
        """The rule that refuses a child of this one with these wishes; None when none does."""
        for name, must_succeed in wishes:
            target = self.nodes[name]
            if self._closes_ring(parent, target, must_succeed):
                return "dependency_cycle"
            if self._has_failed(target, must_succeed):
                return "dependency_failed"
        return None

    def _closes_ring(self, parent: Node | None, target: Node, must_succeed: bool) -> bool:
        if parent is None or target.is_done or self._has_failed(target, must_succeed):
            return False
        waited_for = self._waited_for(target)
        return any(one.newest.name in waited_for for one in parent.session.waits_for_children)

    def add(self, name: str, parent: Node | None, wishes: Sequence[Wish], *, refused: bool) -> Node:
        """A request, permitted or not."""
        session = Conversation(parent.session if parent is not None else None)
        if parent is not None:
            parent.session.children.append(session)
        node = Node(name, parent, session, wishes, "refused" if refused else "prepared")
        node.unmet = {wish for wish, _ in wishes}
        session.nodes.append(node)
        self.nodes[name] = node
        return node

    def takes_message(self, node: Node) -> bool:
        """Whether the session of this run goes on at once with a message."""
        if not node.is_newest:
            return False
        if node.is_yielded:
            return node.state == "ended"
        above = node.session.requester.newest if node.session.requester is not None else None
        is_announced_now = (
            above is not None and above.state == "ended" and above.is_done and not above.is_yielded
        )
        return node.state == "announced" and not node.session.at_work and not is_announced_now

    def go_on(self, name: str, node: Node) -> None:
        """The session of a run goes on with another one."""
        session = node.session
        parent = session.requester.newest if session.requester is not None else None
        if parent is not None:
            parent.was_done = parent.is_done
        node.state = "announced"
        self.nodes[name] = Node(name, parent, session, (), "queued")
        session.nodes.append(self.nodes[name])

    def look(self, node: Node) -> None:
        """Go on with one that is prepared or waits, as far as those that it waits for allow it."""
        was_waiting = node.state == "waiting"
        wished = self._unmet(node)
        if any(self._has_failed(one, must) for one, must in wished):
            node.state, node.outcome = ("ended", "error") if was_waiting else ("refused", None)
            return
        node.unmet -= {one.name for one, _ in wished if one.is_done}
        node.state = "waiting" if node.unmet else "queued"

    def _unmet(self, node: Node) -> list[tuple[Node, bool]]:
        return [(self.nodes[name], must) for name, must in node.wishes if name in node.unmet]

    def _has_failed(self, target: Node, must_succeed: bool) -> bool:
        """What is below it may go on: it makes no success of it."""
        is_over = target.is_settled or target.state == "ended"
        failed = must_succeed and is_over and target.outcome != "success"
        return target.state == "refused" or failed

    def _waited_for(self, target: Node) -> set[str]:
        """Whoever has to be over before this one is done, itself included."""
        seen: set[str] = set()
        ahead = [target]
        while ahead:
            node = ahead.pop()
            if node.name in seen:
                continue
            seen.add(node.name)
            ahead += node.session.at_work
            if node.state in ("prepared", "waiting"):
                wished = self._unmet(node)
                if not any(self._has_failed(one, must) for one, must in wished):
                    ahead += [one for one, _ in wished if not one.is_done]
        return seen
