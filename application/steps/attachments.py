"""The step that writes attachments into the child's workspace."""

import itertools

from application.log.texts import Contents
from application.ports.fault_injection import FaultPoint
from application.ports.files import (
    AttachmentFiles,
    AttachmentRemovalError,
    AttachmentWriteError,
    StagedFiles,
)
from application.steps.step import StepPlace, StepRefusedError, StepResult, UndoError
from domain.context.attachment_manifest import (
    FilesMismatchError,
    parse_file_list,
    relative_dir,
    restore_files,
)
from domain.context.attachments import AcceptedFiles, write_failed_refusal
from domain.run.facts import Plan, StepName, StepState, UndoOutcome
from domain.run.state import Run
from domain.values import rules

LIMIT_SECONDS = 10.0
_NO_WORKSPACE = "the child has no workspace"
_GONE = "the attached files are no longer stored; spawn again with the files"


class AttachmentsStep:
    """Step that writes the staged files, which were checked at admission. Implements
    `StepMaker`."""

    name: StepName = "attachments"
    limit_seconds = LIMIT_SECONDS

    def __init__(
        self,
        files: AttachmentFiles,
        staged: StagedFiles,
        contents: Contents,
        interruption: FaultPoint,
    ) -> None:
        self._files = files
        self._staged = staged
        self._contents = contents
        self._interruption = interruption

    async def place(self, run: Run, plan: Plan) -> StepPlace | None:
        """Return the run's attachments folder; None without attachments.

        Raises:
            StepRefusedError: If the files were refused when they were checked.
        """
        attachments = run.attachments
        if attachments is None:
            return None
        if attachments.refusal is not None:
            text = await self._contents.text(attachments.refusal)
            status = attachments.refusal_status or "error"
            raise StepRefusedError(rules.ATTACHMENTS.refusal(text or _GONE, status=status))
        if plan.workspace_dir is None:
            raise _step_refusal(_NO_WORKSPACE)
        return StepPlace(plan.workspace_dir, relative_dir(run.run_id))

    async def make(self, run: Run, state: StepState, *, is_resumed: bool) -> StepResult:
        """Write the checked files unchanged."""
        assert state.root is not None
        accepted = await self._accepted_files(run)
        numbers = itertools.count(1)
        try:
            await self._files.write(
                state.root,
                run.run_id,
                accepted,
                is_resumed=is_resumed,
                timeout_seconds=self.limit_seconds,
                during=lambda: self._interruption("after", f"attachment:{next(numbers)}"),
            )
        except AttachmentWriteError as failure:
            raise _step_refusal(failure.reason) from None
        assert run.attachments is not None
        return StepResult(
            outcome="written",
            manifest=run.attachments.manifest,
            file_count=accepted.count,
            total_bytes=accepted.total_bytes,
        )

    async def undo(self, run: Run, state: StepState) -> UndoOutcome:
        """Delete the run's folder with all its content."""
        assert state.root is not None
        try:
            return await self._files.remove(
                state.root, run.run_id, timeout_seconds=self.limit_seconds
            )
        except AttachmentRemovalError as failure:
            raise UndoError(f"the attachments cannot be removed: {failure.reason}") from None

    async def _accepted_files(self, run: Run) -> AcceptedFiles:
        assert run.attachments is not None
        assert run.attachments.manifest is not None
        text = await self._contents.text(run.attachments.manifest)
        if text is None:
            raise _step_refusal(_GONE)
        try:
            return restore_files(parse_file_list(text), await self._staged.read(run.run_id))
        except FilesMismatchError:
            raise _step_refusal(_GONE) from None


def _step_refusal(reason: str) -> StepRefusedError:
    refusal = write_failed_refusal(reason)
    return StepRefusedError(rules.ATTACHMENTS.refusal(refusal.text, status=refusal.status))
