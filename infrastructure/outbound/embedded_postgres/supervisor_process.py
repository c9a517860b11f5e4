"""Process of the supervisor: start it, and read the reason why it ended."""

import contextlib
import json
import os
import select
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from infrastructure.outbound.embedded_postgres import process

_BOOT = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from infrastructure.outbound.embedded_postgres.supervisor import main; main(sys.argv[2])"
)
_PROJECT = Path(__file__).resolve().parents[3]
_REPORT_BYTES_MAX = 10_000


@dataclass(frozen=True)
class SupervisorArguments:
    """Arguments of a supervisor: the home, the directories of programs, and the inherited server
    lock."""

    home: Path
    directories: list[Path]
    lock: int

    def command(self) -> list[str]:
        """Return the command line: isolated from the environment and without installed packages."""
        text = {
            "home": str(self.home),
            "directories": [str(directory) for directory in self.directories],
            "lock": self.lock,
        }
        return [sys.executable, "-I", "-S", "-c", _BOOT, str(_PROJECT), json.dumps(text)]

    @classmethod
    def read(cls, text: str) -> "SupervisorArguments":
        """Parse the last argument of the command line."""
        fields = json.loads(text)
        return cls(
            Path(fields["home"]),
            [Path(directory) for directory in fields["directories"]],
            fields["lock"],
        )


class SupervisorProcess:
    """A started supervisor, and the pipe for the reason why it ended."""

    def __init__(self, arguments: SupervisorArguments, timeout_seconds: float) -> None:
        self._report = b""
        reader, writer = os.pipe()
        try:
            # Double fork: the started process exits after forking, so that the supervisor never
            # becomes a zombie of this process.
            with contextlib.suppress(subprocess.TimeoutExpired):
                subprocess.run(
                    arguments.command(),
                    stdin=subprocess.DEVNULL,
                    stdout=writer,
                    stderr=writer,
                    cwd="/",
                    env=process.server_environment(),
                    pass_fds=(arguments.lock,),
                    start_new_session=True,
                    timeout=timeout_seconds,
                    check=False,
                )
        except BaseException:
            os.close(reader)
            raise
        finally:
            os.close(writer)
        self._reader = reader

    def ended_because(self) -> str | None:
        """Return None while the supervisor runs; then its reason, empty if it was killed."""
        while select.select([self._reader], [], [], 0)[0]:
            part = os.read(self._reader, _REPORT_BYTES_MAX)
            if not part:
                return self._report.decode("utf-8", "replace").strip()
            self._report = (self._report + part)[-_REPORT_BYTES_MAX:]
        return None

    def close(self) -> None:
        """Close the pipe. The supervisor keeps running."""
        os.close(self._reader)
