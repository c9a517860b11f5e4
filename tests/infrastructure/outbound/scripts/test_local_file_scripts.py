"""Context scripts that are files."""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from application.ports.scripts import ScriptFinished
from infrastructure.outbound.child_processes.launcher import ProcessLauncher
from infrastructure.outbound.scripts.local import LocalFileScripts
from tests.support.builders.launches import SERVER, program
from tests.support.builders.scripts import script_run, source_in
from tests.support.servers.guarded_programs import DAEMON
from tests.support.servers.process_table import is_alive

Run = Callable[..., Awaitable[ScriptFinished]]
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


def python_script(tmp_path: Path, text: str) -> str:
    return str(program(tmp_path / "script", f"#!{sys.executable} -IS\n{text}"))


async def shown(run: Run, uri: str, **request: Any) -> list[Any]:
    finished = await run(uri, **request)
    assert finished.error is None, finished.error
    seen: list[Any] = json.loads(finished.output)
    return seen


async def test_mapped_variables_are_arguments_in_their_order(run: Run, tmp_path: Path) -> None:
    program(tmp_path / "show", SHOW)
    arg_map = {"agent": "targetAgentId", "tag": "label", "spawner": "requesterAgentId"}
    arguments, _, _, stdin = await shown(run, "show", argMap=arg_map)
    assert arguments == ["agent=steward", "tag=", "spawner=main"]
    assert stdin == ""


@pytest.mark.parametrize(
    "task",
    [
        "a  b",
        "$(touch pwned) `id` ${HOME}",
        'it\'s "q"',
        "--rm; ls | cat &",
        "* ? [a]\n\té\\",
        "-x",
    ],
)
async def test_no_value_is_ever_interpreted(run: Run, tmp_path: Path, task: str) -> None:
    program(tmp_path / "show", SHOW)
    arguments, *_ = await shown(
        run, "show", argMap={"task": "task", "c": "cfg"}, variables={"task": task, "cfg": {"a": 1}}
    )
    assert arguments == [f"task={task}", 'c={"a":1}']
    assert not (tmp_path / "pwned").exists()


async def test_a_script_sees_four_variables_of_the_server_and_the_facts(
    run: Run, tmp_path: Path
) -> None:
    program(tmp_path / "show", SHOW)
    _, seen, _, _ = await shown(run, "show", facts={"SPAWNLOG_RUN_ID": "1", "SPAWNLOG_X": "a\0b"})
    seen.pop("LC_CTYPE", None)  # set by the interpreter itself
    assert seen == {
        "PATH": SERVER["PATH"],
        "HOME": str(tmp_path / "home"),
        "LANG": "C.UTF-8",
        "SPAWNLOG_RUN_ID": "1",
        "SPAWNLOG_X": "a\ufffdb",
    }


@pytest.mark.parametrize("uri", ["~/bin/show", "home/bin/show", "./home/bin/show"])
async def test_a_script_is_found_from_home_and_folder_and_runs_in_its_own(
    run: Run, tmp_path: Path, uri: str
) -> None:
    program(tmp_path / "home" / "bin" / "show", SHOW)
    _, _, folder, _ = await shown(run, uri)
    assert folder == os.path.realpath(tmp_path / "home" / "bin")


async def test_a_name_with_spaces_and_signs_is_a_file_name(run: Run, tmp_path: Path) -> None:
    program(tmp_path / "a b; $(id)" / "my script", SHOW)
    _, _, folder, _ = await shown(run, "a b; $(id)/my script")
    assert folder == os.path.realpath(tmp_path / "a b; $(id)")


async def test_a_bare_name_is_never_looked_up_on_the_path(run: Run) -> None:
    finished = await run("true")
    assert finished.error is not None
    assert finished.error.startswith("Script not found: ")


@pytest.mark.parametrize("url", ["https://ghp_s3cret@host/x", "ftp://u:s3cret@host/x"])
async def test_a_variable_that_holds_a_url_is_not_shown(
    launcher: ProcessLauncher, tmp_path: Path, url: str
) -> None:
    scripts = LocalFileScripts(launcher, source_in(tmp_path, lambda _: url), server=SERVER)
    finished = await scripts.run(script_run("${HOOK}"))
    assert "only once its variables are replaced" in str(finished.error)
    assert "s3cret" not in str(finished)


@pytest.mark.parametrize(
    ("uri", "says"),
    [
        ("gone", "Script not found: {folder}/gone"),
        ("gone/too", "Script not found: {folder}/gone/too"),
        ("dir", "Script is a directory: {folder}/dir; name the file in it"),
        ("plain", "Script is not executable: {folder}/plain; make it so with chmod +x"),
        ("text", "Script is no program: {folder}/text; begin it with a line such as #!/bin/sh"),
        ("lost", "Script could not be executed: '{folder}/lost': No such file or directory"),
    ],
)
async def test_what_cannot_be_executed_says_what_it_is(
    run: Run, tmp_path: Path, uri: str, says: str
) -> None:
    (tmp_path / "dir").mkdir()
    (tmp_path / "plain").write_text("#!/bin/sh\n")
    program(tmp_path / "text", "hello\n")
    program(tmp_path / "lost", "#!/no/such/interpreter\n")
    finished = await run(uri)
    assert (finished.error, finished.exit_code) == (says.format(folder=tmp_path), None)


@pytest.mark.parametrize("word", ["s3cret", "s3'cr\\et\u200b"])
async def test_what_stands_behind_a_variable_of_a_path_is_not_shown(
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


async def test_a_failure_carries_code_and_stderr_and_keeps_the_output(
    run: Run, tmp_path: Path
) -> None:
    program(tmp_path / "script", "#!/bin/sh\necho half; printf 'bad \\377\\n' >&2; exit 3\n")
    finished = await run("script")
    assert (finished.error, finished.exit_code) == ("Script exited with code 3: bad \ufffd", 3)
    assert finished.output == "half"


async def test_a_failure_without_words_is_its_code(run: Run, tmp_path: Path) -> None:
    program(tmp_path / "script", "#!/bin/sh\nexit 1\n")
    assert (await run("script")).error == "Script exited with code 1"


async def test_a_script_that_dies_of_a_signal_says_so(run: Run, tmp_path: Path) -> None:
    program(tmp_path / "script", "#!/bin/sh\nkill -SEGV $$\n")
    assert (await run("script")).error == "Script was ended by signal SIGSEGV"


async def test_too_long_an_argument_is_refused_with_the_way_out(run: Run, tmp_path: Path) -> None:
    program(tmp_path / "script", "#!/bin/sh\n")
    finished = await run("script", argMap={"t": "task"}, variables={"task": "x" * 131_072})
    assert finished.error is not None
    assert finished.error.startswith('Script was not run: argument "t" has 131074 bytes')
    assert 'format "json"' in finished.error


async def test_an_argument_with_nul_does_not_raise(run: Run, tmp_path: Path) -> None:
    program(tmp_path / "show", SHOW)
    arguments, *_ = await shown(run, "show", argMap={"t": "task"}, variables={"task": "a\0b"})
    assert arguments == ["t=a\ufffdb"]


async def test_a_fact_that_no_program_can_be_given_does_not_raise(run: Run) -> None:
    finished = await run("script", facts={"A=B": "x"})
    assert finished.error is not None
    assert finished.error.startswith("Script could not be started: the name of an environment")


async def test_a_stopping_server_runs_no_script(tmp_path: Path) -> None:
    closed = ProcessLauncher()
    await closed.close()
    scripts = LocalFileScripts(closed, source_in(tmp_path), server=SERVER)
    assert "stopping" in str((await scripts.run(script_run("script"))).error)


@pytest.mark.server
async def test_a_script_that_hangs_is_ended_with_its_daemon(run: Run, tmp_path: Path) -> None:
    uri = python_script(tmp_path, DAEMON + "daemon()\nsignal.pause()")
    finished = await run(uri, timeout_seconds=2)
    assert finished.error == "Script execution timed out after 2 seconds"
    assert not is_alive(int(finished.output))


async def test_a_daemon_does_not_outlive_a_script_that_exits(run: Run, tmp_path: Path) -> None:
    uri = python_script(tmp_path, DAEMON + "daemon()")
    async with asyncio.timeout(10):
        finished = await run(uri)
    assert finished.error is None
    assert not is_alive(int(finished.output))


async def test_fifty_megabytes_are_cut_at_the_limit(run: Run, tmp_path: Path) -> None:
    program(tmp_path / "script", "#!/bin/sh\nexec head -c 50000000 /dev/zero\n")
    finished = await run("script", output_bytes_max=1_000_000)
    assert finished.error is not None
    assert finished.error.startswith("Script printed more than 1000000 bytes and was ended")
    assert (len(finished.raw), len(finished.output)) == (1_000_000, 1_000_000)


async def test_a_script_that_never_reads_its_long_input_can_end(run: Run, tmp_path: Path) -> None:
    program(tmp_path / "script", "#!/bin/sh\necho done\n")
    finished = await run(
        "script", format="json", argMap={"t": "task"}, variables={"task": "m" * 5 * 1024 * 1024}
    )
    assert (finished.output, finished.error) == ("done", None)


async def test_a_long_input_arrives_whole(run: Run, tmp_path: Path) -> None:
    program(tmp_path / "script", "#!/bin/sh\nexec wc -c\n")
    finished = await run(
        "script", format="json", argMap={"t": "task"}, variables={"task": "m" * 5 * 1024 * 1024}
    )
    assert finished.output == str(5 * 1024 * 1024 + len('{"t":""}'))
