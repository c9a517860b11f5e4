"""What waits for what, in plain sets: it looks at the whole tree each time, and knows no events."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

State = Literal["prepared", "waiting", "queued", "started", "ended", "announced", "refused"]
Wish = tuple[str, bool]


"""The name of a run, and whether it has to succeed."""


@dataclass
class Node:
    """A run. `unmet` are those of its wishes that are not done yet, as far as it was looked."""

    name: str
    parent: "Node | None"
    wishes: Sequence[Wish]
    state: State = "prepared"
    outcome: str | None = None
    children: list["Node"] = field(default_factory=list)
    unmet: set[str] = field(default_factory=set)

    @property
    def is_settled(self) -> bool:
        """Whether nothing is to be done for it any more."""
        return self.state in ("announced", "refused")

    @property
    def is_done(self) -> bool:
        """Whether it is over, and all below it are settled."""
        over = self.state == "ended" and all(one.is_settled for one in self.children)
        return self.is_settled or over

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
        above = [parent, *parent.above] if parent is not None else []
        for name, must_succeed in wishes:
            if any(one.name in self._waited_for(name) for one in above):
                return "dependency_cycle"
            target = self.nodes[name]
            if self._has_failed(target, must_succeed):
                return "dependency_failed"
        return None

    def add(self, name: str, parent: Node | None, wishes: Sequence[Wish], *, refused: bool) -> Node:
        """A request, permitted or not."""
        node = Node(name, parent, wishes, "refused" if refused else "prepared")
        node.unmet = {wish for wish, _ in wishes}
        self.nodes[name] = node
        if parent is not None:
            parent.children.append(node)
        return node

    def look(self, node: Node) -> None:
        """Go on with one that is prepared or waits, as far as those that it waits for allow it."""
        was_waiting = node.state == "waiting"
        wished = [(self.nodes[name], must) for name, must in node.wishes if name in node.unmet]
        if any(self._has_failed(one, must) for one, must in wished):
            node.state, node.outcome = ("ended", "error") if was_waiting else ("refused", None)
            return
        node.unmet -= {one.name for one, _ in wished if one.is_done}
        node.state = "waiting" if node.unmet else "queued"

    def _has_failed(self, target: Node, must_succeed: bool) -> bool:
        """What is below it may go on: it makes no success of it."""
        is_over = target.is_settled or target.state == "ended"
        failed = must_succeed and is_over and target.outcome != "success"
        return target.state == "refused" or failed

    def _waited_for(self, name: str) -> set[str]:
        """Whoever has to be over before this one is done, itself included."""
        seen: set[str] = set()
        ahead = [name]
        while ahead:
            node = self.nodes[ahead.pop()]
            if node.name in seen:
                continue
            seen.add(node.name)
            ahead += [one.name for one in node.children if not one.is_settled]
            if node.state in ("prepared", "waiting"):
                ahead += node.unmet
        return seen
