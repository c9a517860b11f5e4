"""`spawnlog open`: the page, signed in to by a code that works once."""

from typing import Annotated

import typer

from infrastructure.inbound.command_line.client.options import ApiPlace

BrowserOption = Annotated[
    bool,
    typer.Option("--browser/--no-browser", help="Open a browser, or print the address alone."),
]


def open_page(browser: BrowserOption = True, *, api: ApiPlace) -> None:
    """Open the page, signed in with this token.

    The address works once, for a minute.
    """
    with api.client() as client:
        made = client.perform(lambda api: api.make_page_code())
        address = f"{client.server.url}/ui/"
    # Behind the `#`: no browser sends that to a server, so it is in no log of one.
    if made.code is not None:
        address += f"#code={made.code}"
    print(address)
    if browser:
        import webbrowser

        webbrowser.open(address)
