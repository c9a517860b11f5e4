"""`spawnlog log verify` put together: a database, a place for the progress, and a report."""

from pathlib import Path

from infrastructure.outbound.log.verify.verify import VerifyOrder, run_verification
from infrastructure.outbound.log.verify.whole_tables import ExpectedHead
from infrastructure.verify_order import OnVerifyProgress, VerifyOptions, VerifyReport

STATE_FILE = "log-verify.json"


def verify_log(
    conninfo: str, data_directory: Path, options: VerifyOptions, on_progress: OnVerifyProgress
) -> VerifyReport:
    """Look over the log of this database."""
    head = ExpectedHead(*options.head, "the head given") if options.head is not None else None
    verification = run_verification(
        conninfo,
        VerifyOrder(
            state_file=options.state_file or data_directory / STATE_FILE,
            head=head,
            resume=options.resume,
            on_progress=on_progress,
        ),
    )
    checked, found = verification.checked, verification.difference
    return VerifyReport(
        head=str(verification.head),
        began=verification.began,
        events=checked.position - verification.began,
        run_rows=checked.run_rows,
        session_rows=checked.session_rows,
        contents=checked.contents,
        transcripts=checked.transcripts,
        erased=checked.erased,
        seconds=verification.seconds,
        position=found.position if found else None,
        kind=found.kind if found else None,
        difference=str(found) if found else None,
    )
