"""Where a script is, by its revision and by how it is written."""

from dataclasses import replace
from pathlib import Path

from infrastructure.outbound.child_processes.launcher import ProcessLauncher
from infrastructure.outbound.scripts.by_uri import ScriptsByUri
from infrastructure.outbound.scripts.http import HttpScripts
from infrastructure.outbound.scripts.local import LocalFileScripts
from tests.support.builders.launches import SERVER, program
from tests.support.builders.scripts import Source, script_run, source_in


async def test_a_relative_path_starts_where_the_file_of_the_revision_is(
    launcher: ProcessLauncher, tmp_path: Path
) -> None:
    for revision in (1, 2):
        program(tmp_path / str(revision) / "s", f"#!/bin/sh\necho revision {revision}\n")
    scripts = LocalFileScripts(
        launcher, lambda pinned: Source(tmp_path / str(pinned.revision)), server=SERVER
    )
    request = script_run("s")
    for revision in (2, 1):
        pinned = replace(request.pinned, revision=revision)
        finished = await scripts.run(replace(request, pinned=pinned))
        assert finished.output == f"revision {revision}"


async def test_a_uri_is_a_file_or_a_url_by_how_it_is_written(
    launcher: ProcessLauncher, tmp_path: Path
) -> None:
    program(tmp_path / "s", "#!/bin/sh\necho file\n")
    files = LocalFileScripts(launcher, source_in(tmp_path), server=SERVER)
    urls = HttpScripts(source_in(tmp_path))
    served = ScriptsByUri(files, urls)
    assert (await served.run(script_run("s"))).output == "file"
    finished = await served.run(script_run("HTTP://127.0.0.1:1/"))
    assert finished.error == "Script cannot be reached"
