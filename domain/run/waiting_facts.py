"""What a run waits for before it is queued, and with which others it was asked for."""

from typing import Literal
from uuid import UUID

from domain.values.record import Fact

DependencyVia = Literal["dependsOn", "chainAfter", "reference"]
DependencyNeeds = Literal["success", "ended"]


class Dependency(Fact):
    """An earlier run of the tree, by the `name` it was asked for with. It is waited for until it
    and all below it are over; `require` is whether any end of it will do."""

    run_id: UUID
    name: str
    via: DependencyVia
    require: DependencyNeeds = "success"


class BatchFacts(Fact):
    """The place of a run among those of one request, from 0 on, and all of them in their order."""

    batch_id: UUID
    index: int
    run_ids: tuple[UUID, ...]
