"""The step that creates the agent's own workspace if it does not exist."""

import errno

from application.ports.files import WorkspaceFolders
from application.steps.step import StepPlace, StepRefusedError, StepResult, UndoError
from domain.run.facts import Plan, StepName, StepState, UndoOutcome
from domain.run.state import Run
from domain.values import rules

LIMIT_SECONDS = 5.0


class WorkspaceStep:
    """Step that creates the workspace. It is deleted again only if this run created it and it is
    empty.

    Implements `StepMaker`.
    """

    name: StepName = "workspace"
    limit_seconds = LIMIT_SECONDS

    def __init__(self, folders: WorkspaceFolders) -> None:
        self._folders = folders

    async def place(self, run: Run, plan: Plan) -> StepPlace | None:
        """Return the missing part of the path; None if the folder exists or is inherited."""
        if plan.workspace_dir is None or plan.workspace_source != "agent":
            return None
        try:
            missing = await self._folders.missing(plan.workspace_dir)
        except OSError as error:
            raise _folder_refusal(run, error) from None
        if missing is not None and run.steps:
            # Later steps wrote into the folder, and their work is gone with it.
            raise _folder_refusal(run, FileNotFoundError(errno.ENOENT, "it no longer exists"))
        return StepPlace(*missing) if missing is not None else None

    async def make(self, run: Run, state: StepState, *, is_resumed: bool) -> StepResult:
        """Create the folder, unless another run has created it meanwhile."""
        assert state.root is not None
        assert state.relative is not None
        try:
            made = await self._folders.make(state.root, state.relative)
        except OSError as error:
            raise _folder_refusal(run, error) from None
        # An interrupted attempt may have created it.
        return StepResult(outcome="made", made=made or is_resumed)

    async def undo(self, _: Run, state: StepState) -> UndoOutcome:
        """Delete the folder if it is empty."""
        if state.made is False:
            return "left_in_place"
        assert state.root is not None
        assert state.relative is not None
        try:
            return await self._folders.remove_if_empty(state.root, state.relative)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise UndoError(f"the workspace cannot be removed: {reason}") from None


def _folder_refusal(run: Run, error: OSError) -> StepRefusedError:
    assert run.agent_id is not None
    text = unusable_workspace_text(error, run.agent_id)
    return StepRefusedError(rules.WORKSPACE.refusal(text))


def unusable_workspace_text(
    error: OSError, agent_id: str, recorded: str | None = None, named: str | None = None
) -> str:
    """Return the refusal text for an unusable folder, according to whose folder it is."""
    reason = error.strerror or type(error).__name__
    if named is not None:
        return (
            f"The requested workspace cannot be used: {reason}. Give an existing folder, or"
            " omit workspaceDir."
        )
    if recorded is not None:
        return (
            f"The recorded workspace of the requester cannot be used: {reason}. Restore the"
            " folder, or spawn from another session."
        )
    return (
        f'The workspace of agent "{agent_id}" cannot be created: {reason}. Give the agent'
        " another workspace, or fix this one."
    )
