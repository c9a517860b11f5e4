"""Model of messages to a tree of runs, and of the time when its sessions are archived."""

from world.model.tree import DONE, Life, Tree

CLOSED = "closed"
ACTIVE = "active"
FULL = "full"
GOES_ON = "goes on"


def is_put_away_at_once(life: Life) -> bool:
    """Return True if an announced run is archived right away, and not later or never."""
    if life.is_put_away:
        return True
    if life.manner == "lasting":
        return life.is_stopped
    return life.manner == "delete"


def ends_with_a_stop(life: Life) -> bool:
    """Return True if a session is archived with its run, which was stopped and is not announced
    yet.
    """
    if life.manner == "plain" or life.stage in DONE:
        return False
    return life.is_stopped if life.stage == "ended" else life.is_stopping


def is_due(life: Life) -> bool:
    """Return True if an announced run is archived, now or later."""
    if life.is_put_away or life.continued_by is not None:
        return life.is_put_away
    return life.manner != "lasting" or life.is_stopped


def judged(tree: Tree, session: str) -> str:
    """Return the result of a message to a session."""
    last = tree.last(session)
    assert last is not None
    if session in tree.closed or (last.stage in DONE and is_put_away_at_once(last)):
        return CLOSED
    if ends_with_a_stop(last):
        return CLOSED
    if last.is_yielded:
        if last.stage != "ended":
            return ACTIVE
    elif last.stage not in DONE or tree.unsettled(session) or _is_about_to_end(tree, last.by):
        return ACTIVE
    return FULL if len(tree.counted(last.by)) >= tree.max_children else GOES_ON


def _is_about_to_end(tree: Tree, session: str) -> bool:
    """Return True if the newest run of a session and all runs below it are over, and it is not
    announced.
    """
    last = tree.last(session)
    is_over = last is not None and last.stage == "ended" and not last.is_yielded
    return is_over and tree.below_is_done(session)


def send(tree: Tree, name: str, session: str) -> str:
    """Send a message to a session, and return the result. The run that it becomes gets this
    name.
    """
    last, result = tree.last(session), judged(tree, session)
    assert last is not None
    above = tree.last(last.by)
    if result not in (FULL, GOES_ON):
        return result
    goes_on = result == GOES_ON
    tree.lives[name] = Life(
        name,
        last.by,
        last.depth,
        stage="queued" if goes_on else "refused",
        agent_id=last.agent_id,
        has_key=True,
        is_admitted=goes_on,
        session=session,
        manner=last.manner,
        continues=last.name if goes_on else None,
        above=above.name if above is not None else None,
    )
    if goes_on:
        last.continued_by = name
        last.stage = "announced"
        tree.settle()
    return result
