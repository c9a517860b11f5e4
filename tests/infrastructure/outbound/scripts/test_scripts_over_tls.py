"""The name of a URL is verified, whatever address it is called at.

`tests/tls` holds an authority of these tests, and a certificate with its key for `right.test`.
"""

import ssl
from pathlib import Path

from infrastructure.outbound.scripts.http import HttpScripts
from tests.support.builders.scripts import script_run, source_in
from tests.support.servers.script_server import ScriptServer, answer

TLS = Path(__file__).parents[3] / "tls"


def trusting() -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(TLS / "authority.pem"))


async def test_tls_is_verified_for_the_name_and_not_for_the_address() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS / "right_test.pem")

    async def here(host: str, port: int) -> tuple[str, ...]:
        return ("127.0.0.1",)

    distrusted = "Script cannot be reached: its certificate is not trusted here"
    async with ScriptServer(context) as server:
        right, wrong = (server.at("/p", answer(b"text"), f"{name}.test") for name in ("right", "w"))
        scripts = HttpScripts(source_in(Path("/")), resolve=here, tls=trusting())
        # In turn, so that a connection that was kept would be used for the other name.
        told = [(await scripts.run(script_run(uri))).error for uri in (right, wrong, right)]
        scripts = HttpScripts(source_in(Path("/")), resolve=here)
        told.append((await scripts.run(script_run(right))).error)
    assert told == [None, distrusted, None, distrusted]
    assert [one.headers["host"] for one in server.asked] == [f"right.test:{server.port}"] * 2
