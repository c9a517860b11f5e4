"""`spawnlog demo`: a real server, a small family of real runs, and the story of each."""

import shlex
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infrastructure.inbound.command_line.display.failures import CommandFailed, RunFailed
from infrastructure.inbound.command_line.display.output import print_note

if TYPE_CHECKING:
    from infrastructure.inbound.command_line.client.client import CommandClient
    from infrastructure.inbound.command_line.demo.gateway import DemoGateway


def demo(
    data_dir: Annotated[
        Path | None,
        typer.Option(
            "--data-dir",
            metavar="DIR",
            help="Keep the data here. Without it a temporary directory is used and removed.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Show on real runs what spawnlog does.

    Starts a server, spawns a small family, tells the story of each run, and stops. Exits with 1
    when anything was not as it should be.
    """
    from infrastructure.inbound.command_line.client.client import CommandClient
    from infrastructure.inbound.command_line.demo.gateway import copy_examples, start_demo_gateway
    from infrastructure.inbound.command_line.demo.server import (
        demo_data_directory,
        end_on_signals,
        examples_directory,
        start_demo_server,
    )
    from spawnlog.core.location import locate_server

    examples = examples_directory()
    config = examples / "spawnlog.json5"
    with (
        end_on_signals(),
        demo_data_directory(data_dir) as directory,
        tempfile.TemporaryDirectory(prefix="spawnlog-demo-") as copies,
        start_demo_gateway(examples) as gateway,
    ):
        print_note(f"starting a server for {config} (the first start makes its database)")
        copied = copy_examples(examples, Path(copies))
        with start_demo_server(copied, directory, gateway.environment) as url:
            print(f"The server is ready on {url}.")
            with CommandClient(locate_server(url, directory, {})) as client:
                unexpected = _play_stories(client, examples, gateway)
    _print_next_steps(config, data_dir)
    if unexpected:
        raise RunFailed("not as expected:\n" + "\n".join(unexpected))
    print("\nEverything was as it should be.")


def _play_stories(client: "CommandClient", examples: Path, gateway: "DemoGateway") -> list[str]:
    """Play the stories one after another; what was not as expected."""
    from infrastructure.inbound.command_line.demo.stage import DemoStage
    from infrastructure.inbound.command_line.demo.stories import STORIES

    unexpected: list[str] = []
    for number, story in enumerate(STORIES, 1):
        print(f"\n{number}. {story.title}\n  {story.about}", flush=True)
        stage = DemoStage(client, f"agent:main:demo-{number}", gateway)
        try:
            story.play(stage, examples)
        except CommandFailed as failure:
            stage.unexpected.append(failure.message)
            print(f"  NOT AS EXPECTED: {failure.message}")
        unexpected += [f"{number}. {story.title}: {text}" for text in stage.unexpected]
    return unexpected


def _print_next_steps(config: Path, data_dir: Path | None) -> None:
    command = _command()
    where = "" if data_dir is None else f" --data-dir {shlex.quote(str(data_dir))}"
    note = "" if data_dir is None else f"The data of this demo is kept in {data_dir}.\n"
    print(
        f"\nTo look further\n{note}"
        f"  {command} serve --config {shlex.quote(str(config))}{where}\n"
        "and in another terminal:\n"
        f'  {command} spawn "Count the words of data/harbour.txt" --agent counter --wait{where}\n'
        f"  {command} run list{where}\n"
        f"  {command} run events last{where}\n"
        f"  {command} run prompt last{where}\n"
        f"  {command} event list --follow{where}"
    )


def _command() -> str:
    """How this program is called from where its user is."""
    beside = Path(sys.executable).with_name("spawnlog")
    if shutil.which("spawnlog"):
        return "spawnlog"
    program = shlex.quote(str(beside if beside.exists() else sys.executable))
    return program if beside.exists() else f"{program} -m {_MODULE}"


_MODULE = "infrastructure.inbound.command_line.main"
