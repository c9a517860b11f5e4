"""`spawnlog open`: opens the page with a code that signs in once."""

from typing import Annotated

import typer

from infrastructure.inbound.command_line.client.options import ApiPlace
from infrastructure.inbound.command_line.display.failures import ResourceNotFoundError

BrowserOption = Annotated[
    bool,
    typer.Option("--browser/--no-browser", help="Open a browser, or only print the address."),
]


def open_page(browser: BrowserOption = True, *, api: ApiPlace) -> None:
    """Open the web page in a browser, signed in with this token.

    The address works once, within a minute.
    """
    with api.client() as client:
        signin = client.perform(lambda api: api.make_page_code())
        if not signin.page_built:
            raise ResourceNotFoundError(
                "the page of this server is not built: run `make page` in its checkout, then"
                " restart it"
            )
        address = f"{client.server.url}/ui/"
    # Browsers do not send the fragment to a server, so the code is in no access log.
    if signin.code is not None:
        address += f"#code={signin.code}"
    print(address)
    if browser:
        import webbrowser

        webbrowser.open(address)
