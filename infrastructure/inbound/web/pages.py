"""Routes of the web page: `/`, `/ui/` and its files. Its data comes from the HTTP API."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from infrastructure.inbound.web.built_files import BuiltFile, find_built_files, read_built_files
from infrastructure.inbound.web.policy import DOCUMENT_HEADERS

ROOT = "/ui/"
DOCUMENT = "index.html"
_FOREVER = {"cache-control": "public, max-age=31536000, immutable"}
_NOT_BUILT = (
    "The page is not built. Run `make page` in the checkout, then restart the server.\nThe HTTP"
    " API works without it; see /openapi.json.\n"
)
_NOT_SERVED = (
    "This server serves no page: noPage is set. The HTTP API works without it; see /openapi.json.\n"
)
_WANTS_TOKEN = b'<meta name="authentication" content="token">'
_WANTS_NONE = b'<meta name="authentication" content="none">'


def page_routes(*, wants_token: bool = True, folder: Path | None = None) -> Sequence[BaseRoute]:
    """Return the routes of the page. If it was not built, they answer with advice.

    Args:
        wants_token: True if the server requires a token. The document says so, because finding out
            by a request would log an error in the browser's console.
        folder: The folder of the page. Default: where it was built.
    """
    folder = folder or find_built_files()
    if folder is None:
        return _advice(_NOT_BUILT)
    files = _Files(read_built_files(folder), wants_token=wants_token)
    return [
        Route("/", _lead_to_page),
        Route("/ui", _lead_to_page),
        Route(ROOT + "assets/{name:path}", files.send_asset),
        # Every view has an address of its own and is the same document.
        Route(ROOT + "{path:path}", files.send_document),
    ]


def routes_without_page() -> Sequence[BaseRoute]:
    """Return the routes of a server with `noPage`; each answers that the page is disabled."""
    return _advice(_NOT_SERVED)


def _advice(text: str) -> Sequence[BaseRoute]:
    async def advise(_: Request) -> Response:
        return PlainTextResponse(text, 404)

    return [Route(path, advise) for path in ("/", "/ui", ROOT + "{path:path}")]


async def _lead_to_page(_: Request) -> Response:
    return RedirectResponse(ROOT, 307)


class _Files:
    def __init__(self, files: Mapping[str, BuiltFile], *, wants_token: bool) -> None:
        self._files = files
        document = files[DOCUMENT]
        if not wants_token:
            content = document.content.replace(_WANTS_TOKEN, _WANTS_NONE)
            document = BuiltFile(document.media_type, content, None)
        self._document = document

    async def send_document(self, request: Request) -> Response:
        """Send the document, for any view. It names the files of its build, so it is not cached."""
        return _response(request, self._document, {"cache-control": "no-cache", **DOCUMENT_HEADERS})

    async def send_asset(self, request: Request) -> Response:
        """Send a file. Its name contains a hash of its content, so it never changes."""
        file = self._files.get(f"assets/{request.path_params['name']}")
        if file is None:
            return PlainTextResponse("File not found; reload the page.\n", 404)
        return _response(request, file, _FOREVER)


def _response(request: Request, file: BuiltFile, headers: Mapping[str, str]) -> Response:
    headers = {**headers, "vary": "accept-encoding", "content-type": file.media_type}
    if file.packed is not None and "gzip" in request.headers.get("accept-encoding", ""):
        return Response(file.packed, headers={**headers, "content-encoding": "gzip"})
    return Response(file.content, headers=headers)
