"""How far a verification has come, in a small file, so that the next one can go on from there."""

import os
import secrets
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import UUID

import orjson

from infrastructure.contract.errors import UserError
from infrastructure.outbound.log.verify.ranges import RangeFindings

FILE_BYTES_MAX = 4_096


@dataclass(frozen=True, slots=True)
class Progress:
    """Everything up to `position` was found right; what was counted so far."""

    log_id: UUID
    position: int = 0
    chain_hash: bytes = b""
    run_rows: int = 0
    session_rows: int = 0
    contents: int = 0
    transcripts: int = 0
    erased: int = 0

    def after(self, findings: RangeFindings) -> "Progress":
        """With a range behind it that was found right as a whole."""
        return replace(
            self,
            position=findings.range.last,
            chain_hash=findings.chain_hash,
            run_rows=self.run_rows + findings.run_rows,
            session_rows=self.session_rows + findings.session_rows,
            contents=self.contents + findings.contents,
            transcripts=self.transcripts + findings.transcripts,
            erased=self.erased + findings.erased,
        )


def note_progress(path: Path, progress: Progress) -> None:
    """Write it down; whoever reads meanwhile finds the earlier one or this one."""
    values = {
        "logId": str(progress.log_id),
        "position": progress.position,
        "chainHash": progress.chain_hash.hex(),
        "runRows": progress.run_rows,
        "sessionRows": progress.session_rows,
        "contents": progress.contents,
        "transcripts": progress.transcripts,
        "erased": progress.erased,
    }
    part = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(orjson.dumps(values, option=orjson.OPT_APPEND_NEWLINE))
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise UserError(
            f"the progress cannot be noted in {path}: {error.strerror};"
            " name another file with --state"
        ) from error


def read_progress(path: Path, log_id: UUID) -> Progress | None:
    """What was noted; None when there is no such file. `UserError` when it is of another log."""
    try:
        with path.open("rb") as file:
            text = file.read(FILE_BYTES_MAX)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UserError(f"the progress in {path} cannot be read: {error.strerror}") from error
    try:
        found = orjson.loads(text)
        progress = Progress(
            log_id=UUID(found["logId"]),
            position=int(found["position"]),
            chain_hash=bytes.fromhex(found["chainHash"]),
            run_rows=int(found["runRows"]),
            session_rows=int(found["sessionRows"]),
            contents=int(found["contents"]),
            transcripts=int(found["transcripts"]),
            erased=int(found["erased"]),
        )
    except (ValueError, TypeError, KeyError) as error:
        raise UserError(
            f"{path} holds no progress of a verification; remove it or leave --resume out"
        ) from error
    if progress.log_id != log_id:
        raise UserError(
            f"the progress in {path} is of another log; name another file with --state or leave"
            " --resume out"
        )
    return progress
