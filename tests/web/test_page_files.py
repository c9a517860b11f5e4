"""Files of the page that a server sends before a user signs in."""

import gzip
import re
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from generators.page_shapes import SHAPES, SOURCE, shapes
from infrastructure.inbound.web.built_files import IN_CHECKOUT, find_built_files, read_built_files
from infrastructure.inbound.web.pages import page_routes
from infrastructure.inbound.web.policy import POLICY
from tests.support.servers.preloaded import ROOT
from tests.support.servers.server import Server

COMPRESSED_BYTES_MAX = 250_000


def browser_of(folder: Path | None = None, *, wants_token: bool = True) -> httpx2.Client:
    """Return a client of the page's routes alone."""
    return TestClient(Starlette(routes=page_routes(wants_token=wants_token, folder=folder)))


def test_every_view_is_the_same_document_under_the_strictest_policy() -> None:
    client = browser_of()
    document = client.get("/ui/runs")
    assert document.text == client.get("/ui/run/x/y?at=pos:3").text == client.get("/").text
    assert document.headers["content-security-policy"] == POLICY
    assert "unsafe" not in POLICY
    assert POLICY.startswith("default-src 'none';")
    assert document.headers["cache-control"] == "no-cache"


def test_files_are_kept_for_ever_by_whoever_has_them_and_packed_for_who_unpacks() -> None:
    client = browser_of()
    files = read_built_files(IN_CHECKOUT)
    for name, file in files.items():
        if name == "index.html":
            continue
        plain = client.get(f"/ui/{name}", headers={"accept-encoding": "identity"})
        assert (plain.content, plain.headers["content-type"]) == (file.content, file.media_type)
        assert "immutable" in plain.headers["cache-control"]
        if file.packed is not None:
            assert gzip.decompress(file.packed) == file.content
            assert client.get(f"/ui/{name}").headers["content-encoding"] == "gzip"


def test_page_stays_below_250_kb_compressed() -> None:
    files = read_built_files(IN_CHECKOUT).values()
    sizes = [len(file.content if file.packed is None else file.packed) for file in files]
    assert sum(sizes) < COMPRESSED_BYTES_MAX


@pytest.mark.parametrize("name", ["missing.js", "%2e%2e%2findex.html", "..%2f..%2fpages.py"])
def test_nothing_but_the_files_of_the_page_is_sent(name: str) -> None:
    assert browser_of().get(f"/ui/assets/{name}").status_code == 404


def test_the_document_says_whether_a_token_is_wanted() -> None:
    assert 'name="authentication" content="token"' in browser_of().get("/ui/").text
    assert 'content="none"' in browser_of(wants_token=False).get("/ui/").text


def test_a_page_that_was_not_built_says_how_to_build_it(tmp_path: Path) -> None:
    assert find_built_files(package=tmp_path, checkout=tmp_path / "x") is None
    (tmp_path / "index.html").write_text("<!doctype html>")
    assert find_built_files(package=tmp_path / "x", checkout=tmp_path) == tmp_path


@pytest.mark.nightly
def test_the_page_is_built_alike_each_time(tmp_path: Path) -> None:
    before = {name: file.content for name, file in read_built_files(IN_CHECKOUT).items()}
    copy = tmp_path / "checkout"
    copy.mkdir()
    (copy / "build_page.py").write_bytes((ROOT / "build_page.py").read_bytes())
    source = Path("infrastructure/inbound/web/page")
    for path in (ROOT / source).rglob("*"):
        if path.is_file():
            target = copy / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    (copy / ".build" / "page").mkdir(parents=True)
    (copy / ".build" / "node").symlink_to(ROOT / ".build" / "node")
    (copy / ".build" / "page" / "node_modules").symlink_to(
        ROOT / ".build" / "page" / "node_modules"
    )
    subprocess.run([sys.executable, copy / "build_page.py"], check=True, timeout=60)
    built = read_built_files(copy / ".build" / "page" / "dist")
    assert {name: file.content for name, file in built.items()} == before


def test_the_shapes_of_the_page_are_those_of_the_api() -> None:
    assert (ROOT / SHAPES).read_text("utf-8") == shapes(ROOT / SOURCE), "write them anew: make docs"


def test_shapes_hold_only_asked_operations(tmp_path: Path) -> None:
    (tmp_path / "view.svelte").write_text(
        "await act('stopRun', { runId }, {}); session.may('spawn')"
    )
    written = shapes(tmp_path)
    assert "stopRun: 'POST /v1/runs/{runId}/stop'," in written
    assert "  stopRun: {\n    runId: string\n  }\n" in written
    assert "  stopRun: StopBody\n" in written
    assert "  stopRun: StoppedAnswer\n" in written
    assert set(re.findall(r"interface (\w+)", written)) == {
        *("Problem", "StopBody", "StoppedAnswer"),
        *("Parameters", "Bodies", "Answers"),
    }


@pytest.mark.server
def test_a_server_sends_its_page_without_marks_of_a_log(
    storm: tuple[Server, object],
) -> None:
    server, _ = storm
    page = httpx2.get(f"{server.url}/ui/")
    assert page.headers.get_list("content-security-policy") == [POLICY]
    assert page.headers.get_list("cache-control") == ["no-cache"]
    assert page.headers["x-content-type-options"] == "nosniff"
    assert "spawnlog-position" not in page.headers
    assert httpx2.get(server.url).headers["location"] == "/ui/"
    assert httpx2.get(f"{server.url}/ui/", headers={"host": "evil.example"}).status_code == 403
