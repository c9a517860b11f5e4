"""`spawnlog log rebuild`."""

from infrastructure.contract.orders import ServeOptions
from infrastructure.inbound.command_line.client.options import (
    ConfigFile,
    DatabaseUrl,
    HomeDir,
    Output,
    OutputOption,
)
from infrastructure.inbound.command_line.display.failures import RunFailed
from infrastructure.inbound.command_line.display.output import print_object
from infrastructure.inbound.command_line.display.progress import show_rebuild_progress


def rebuild_log(
    config: ConfigFile = None,
    database_url: DatabaseUrl = None,
    data_dir: HomeDir = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Make the read tables anew from the events. Exits with 1 when they were not the same.

    Servers go on reading and writing meanwhile. One that was interrupted goes on where it was.
    """
    from infrastructure.server.operations import rebuild

    options = ServeOptions(config=config, database_url=database_url, data_dir=data_dir)
    with show_rebuild_progress() as on_progress:
        report = rebuild(options, on_progress)
    facts = {
        "events": report.events,
        "runs": report.runs,
        "sessions": report.sessions,
        "seconds": round(report.seconds, 3),
        "identical": report.identical,
        "differing": report.differing,
    }
    if not print_object(facts, output):
        print(
            f"{report.events} events gave {report.runs} runs and {report.sessions} sessions "
            f"in {report.seconds:.2f} s"
        )
        if report.identical:
            print("the tables are identical to what they were")
    if not report.identical:
        raise RunFailed(f"{report.differing} rows were not what the events say; now the tables are")
