"""Migration of a database in its own process, so that a server does not keep the libraries."""

import threading
from typing import Any

from infrastructure.contract.errors import UserError
from infrastructure.outbound.log.process import WorkerProcess, exit_with_holder, send_answer


def migrate_in_process(conninfo: str, failure: str) -> tuple[str | None, str]:
    """Migrate the database. Return its revision before and after.

    Args:
        conninfo: The URL of the database.
        failure: The sentence before the reason if the database refuses.

    Raises:
        UserError: A newer release has migrated it, or the database refuses.
    """
    with WorkerProcess(work, {"conninfo": conninfo, "failure": failure}) as process:
        answer = process.receive()
        status = process.wait() if answer is None else 0
    if answer is None:
        raise UserError(f"{failure}: the migration ended early (status {status}); start it again")
    if "refusal" in answer:
        raise UserError(answer["refusal"])
    return answer["before"], answer["after"]


def work(order: dict[str, Any]) -> None:
    """Run the migration, as the main function of that process."""
    threading.Thread(target=exit_with_holder, daemon=True).start()
    from sqlalchemy.exc import SQLAlchemyError

    from infrastructure.outbound.log.schema.migrate import migrate

    try:
        before, after = migrate(order["conninfo"])
    except UserError as error:
        send_answer({"refusal": str(error)})
    except SQLAlchemyError as error:
        send_answer({"refusal": f"{order['failure']}: {first_line(error)}"})
    else:
        send_answer({"before": before, "after": after})


def first_line(error: BaseException) -> str:
    """Return the first line of an error. Drivers put addresses there, but no passwords."""
    origin = getattr(error, "orig", None) or error
    lines = str(origin).strip().splitlines()
    return lines[0] if lines else type(error).__name__
