"""Context scripts that are files, and the choice between a file and a URL."""

import json
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from application.ports.scripts import ScriptFinished
from infrastructure.outbound.child_processes.launcher import ProcessLauncher
from infrastructure.outbound.scripts.by_uri import ScriptsByUri
from infrastructure.outbound.scripts.http import HttpScripts
from infrastructure.outbound.scripts.local import LocalFileScripts
from tests.support.builders.launches import SERVER, program
from tests.support.builders.scripts import Source, script_run, source_in

Run = Callable[..., Awaitable[ScriptFinished]]
Show = Callable[..., Awaitable[list[Any]]]
SHOW = f"""#!{sys.executable} -IS
import json, os, sys
print(json.dumps([sys.argv[1:], dict(os.environ), os.getcwd(), sys.stdin.read()]))
"""


@pytest.fixture
def run(launcher: ProcessLauncher, tmp_path: Path) -> Run:
    server = {**SERVER, "HOME": str(tmp_path / "home")}
    scripts = LocalFileScripts(launcher, source_in(tmp_path), server=server)

    async def run_script(uri: str, **request: Any) -> ScriptFinished:
        return await scripts.run(script_run(uri, **request))

    return run_script


@pytest.fixture
def show(run: Run, tmp_path: Path) -> Show:
    """Run a script that prints its arguments, environment, folder and input."""

    async def show_given(uri: str = "show", **request: Any) -> list[Any]:
        program(tmp_path / uri.replace("~", "home"), SHOW)
        finished = await run(uri, **request)
        assert finished.error is None, finished.error
        seen: list[Any] = json.loads(finished.output)
        return seen

    return show_given


async def test_mapped_variables_are_arguments_in_order(show: Show) -> None:
    arg_map = {"agent": "targetAgentId", "tag": "label", "spawner": "requesterAgentId"}
    arguments, _, _, stdin = await show(argMap=arg_map)
    assert arguments == ["agent=steward", "tag=", "spawner=main"]
    assert stdin == ""


@pytest.mark.parametrize(
    "task",
    [
        "a  b", "$(touch pwned) `id` ${HOME}", 'it\'s "q"', "--rm; ls | cat &", "* ? [a]\n\té\\",
        "-x", "a\0b",
    ],
)  # fmt: skip
async def test_value_is_never_interpreted(show: Show, tmp_path: Path, task: str) -> None:
    arg_map = {"task": "task", "c": "cfg"}
    arguments, *_ = await show(argMap=arg_map, variables={"task": task, "cfg": {"a": 1}})
    assert arguments == [f"task={task}".replace("\0", "\ufffd"), 'c={"a":1}']
    assert not (tmp_path / "pwned").exists()


async def test_environment_is_four_variables_and_facts(show: Show, tmp_path: Path) -> None:
    _, seen, _, _ = await show(facts={"SPAWNLOG_RUN_ID": "1", "SPAWNLOG_X": "a\0b"})
    seen.pop("LC_CTYPE", None)  # set by the interpreter itself
    assert seen == {
        "PATH": SERVER["PATH"],
        "HOME": str(tmp_path / "home"),
        "LANG": "C.UTF-8",
        "SPAWNLOG_RUN_ID": "1",
        "SPAWNLOG_X": "a\ufffdb",
    }


@pytest.mark.parametrize(
    "uri", ["~/bin/show", "home/bin/show", "./home/bin/show", "a b; $(id)/my script"]
)
async def test_script_runs_in_its_own_folder(show: Show, tmp_path: Path, uri: str) -> None:
    _, _, folder, _ = await show(uri)
    assert folder == os.path.realpath((tmp_path / uri.replace("~", "home")).parent)


@pytest.mark.parametrize("url", ["https://ghp_s3cret@host/x", "ftp://u:s3cret@host/x"])
async def test_url_in_variable_is_not_shown(
    launcher: ProcessLauncher, tmp_path: Path, url: str
) -> None:
    scripts = LocalFileScripts(launcher, source_in(tmp_path, lambda _: url), server=SERVER)
    finished = await scripts.run(script_run("${HOOK}"))
    assert "only after its variables are replaced" in str(finished.error)
    assert "s3cret" not in str(finished)


@pytest.mark.parametrize(
    ("uri", "says"),
    [
        ("true", "Script not found: {folder}/true"),
        ("gone", "Script not found: {folder}/gone"),
        ("gone/too", "Script not found: {folder}/gone/too"),
        ("dir", "Script is a directory: {folder}/dir; name the file in it"),
        ("plain", "Script is not executable: {folder}/plain; make it executable with chmod +x"),
        ("text", "Script is not a program: {folder}/text; begin it with a line such as #!/bin/sh"),
        ("lost", "Script could not be executed: '{folder}/lost': No such file or directory"),
    ],
)
async def test_unexecutable_file_says_what_it_is(
    run: Run, tmp_path: Path, uri: str, says: str
) -> None:
    (tmp_path / "dir").mkdir()
    (tmp_path / "plain").write_text("#!/bin/sh\n")
    program(tmp_path / "text", "hello\n")
    program(tmp_path / "lost", "#!/no/such/interpreter\n")
    finished = await run(uri)
    assert (finished.error, finished.exit_code) == (says.format(folder=tmp_path), None)


@pytest.mark.parametrize("word", ["s3cret", "s3'cr\\et\u200b"])
async def test_value_of_variable_in_path_is_not_shown(
    launcher: ProcessLauncher, tmp_path: Path, word: str
) -> None:
    folder = tmp_path / word
    folder.mkdir()
    program(folder / "lost", "#!/no/such/interpreter\n")
    resolved = source_in(tmp_path, lambda uri: uri.replace("${WORD}", word))
    scripts = LocalFileScripts(launcher, resolved, server=SERVER)
    for name, says in (
        ("gone", "Script not found: ${WORD}/gone"),
        ("lost", "Script could not be executed: '${WORD}/lost': No such file or directory"),
        ("", "Script is a directory: ${WORD}/; name the file in it"),
    ):
        finished = await scripts.run(script_run(f"${{WORD}}/{name}"))
        assert finished.error == says


@pytest.mark.parametrize(
    ("lines", "error", "code"),
    [
        ("printf 'bad \\377\\n' >&2; exit 3", "Script exited with code 3: bad \ufffd", 3),
        ("exit 1", "Script exited with code 1", 1),
        ("kill -SEGV $$", "Script was ended by signal SIGSEGV", None),
    ],
)
async def test_failure_has_code_and_stderr_and_keeps_output(
    run: Run, tmp_path: Path, lines: str, error: str, code: int | None
) -> None:
    program(tmp_path / "script", f"#!/bin/sh\necho half; {lines}\n")
    finished = await run("script")
    assert (finished.error, finished.exit_code, finished.output) == (error, code, "half")


async def test_long_argument_is_refused_with_remedy(run: Run, tmp_path: Path) -> None:
    program(tmp_path / "script", "#!/bin/sh\n")
    finished = await run("script", argMap={"t": "task"}, variables={"task": "x" * 131_072})
    assert finished.error is not None
    assert finished.error.startswith('Script was not run: argument "t" has 131074 bytes')
    assert 'format "json"' in finished.error


async def test_fact_with_wrong_name_is_a_failure(run: Run) -> None:
    finished = await run("script", facts={"A=B": "x"})
    assert finished.error is not None
    assert finished.error.startswith("Script could not be started: the name of an environment")


async def test_stopping_server_runs_no_script(tmp_path: Path) -> None:
    closed = ProcessLauncher()
    await closed.close()
    scripts = LocalFileScripts(closed, source_in(tmp_path), server=SERVER)
    assert "stopping" in str((await scripts.run(script_run("script"))).error)


async def test_relative_path_starts_at_file_of_revision(
    launcher: ProcessLauncher, tmp_path: Path
) -> None:
    scripts = LocalFileScripts(
        launcher, lambda pinned: Source(tmp_path / str(pinned.revision)), server=SERVER
    )
    request = script_run("s")
    for revision in (2, 1):
        program(tmp_path / str(revision) / "s", f"#!/bin/sh\necho revision {revision}\n")
        pinned = replace(request.pinned, revision=revision)
        finished = await scripts.run(replace(request, pinned=pinned))
        assert finished.output == f"revision {revision}"


async def test_uri_is_file_or_url(launcher: ProcessLauncher, tmp_path: Path) -> None:
    program(tmp_path / "s", "#!/bin/sh\necho file\n")
    files = LocalFileScripts(launcher, source_in(tmp_path), server=SERVER)
    served = ScriptsByUri(files, HttpScripts(source_in(tmp_path)))
    assert (await served.run(script_run("s"))).output == "file"
    finished = await served.run(script_run("HTTP://127.0.0.1:1/"))
    assert finished.error == "Script cannot be reached: Connection refused"
