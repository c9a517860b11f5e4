"""The process of the supervisor: it is started, and heard of why it ended."""

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
    """What a supervisor is told: the home, where to find programs, and the server lock it
    inherits."""

    home: Path
    directories: list[Path]
    lock: int

    def command(self) -> list[str]:
        """The command line: isolated from the environment, without installed packages."""
        text = {
            "home": str(self.home),
            "directories": [str(each) for each in self.directories],
            "lock": self.lock,
        }
        return [sys.executable, "-I", "-S", "-c", _BOOT, str(_PROJECT), json.dumps(text)]

    @classmethod
    def read(cls, text: str) -> "SupervisorArguments":
        """The order in the last argument of the command line."""
        fields = json.loads(text)
        return cls(
            Path(fields["home"]), [Path(each) for each in fields["directories"]], fields["lock"]
        )


class SupervisorProcess:
    """A supervisor that was started, and the pipe on which it says why it ended."""

    def __init__(self, order: SupervisorArguments, timeout_seconds: float) -> None:
        self._report = b""
        reader, writer = os.pipe()
        try:
            # The process that is started hands over to a child and ends, so that the supervisor is
            # nobody's unreaped child.
            with contextlib.suppress(subprocess.TimeoutExpired):
                subprocess.run(
                    order.command(),
                    stdin=subprocess.DEVNULL,
                    stdout=writer,
                    stderr=writer,
                    cwd="/",
                    env=process.server_environment(),
                    pass_fds=(order.lock,),
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
        """None while the supervisor runs; else its reason, empty when it was killed."""
        while select.select([self._reader], [], [], 0)[0]:
            part = os.read(self._reader, _REPORT_BYTES_MAX)
            if not part:
                return self._report.decode("utf-8", "replace").strip()
            self._report = (self._report + part)[-_REPORT_BYTES_MAX:]
        return None

    def close(self) -> None:
        """Stop listening; the supervisor goes on."""
        os.close(self._reader)
