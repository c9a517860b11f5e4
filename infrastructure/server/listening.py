"""The socket that a server listens on."""

import socket

from domain.configuration.settings import Settings
from infrastructure.contract.errors import UserError


def bind_socket(settings: Settings) -> socket.socket:
    """Return the socket to serve on.

    It is bound before anything else is started.

    Raises:
        UserError: The address cannot be bound.
    """
    try:
        return socket.create_server(
            (settings.host, settings.port),
            family=socket.AF_INET6 if ":" in settings.host else socket.AF_INET,
            backlog=1024,
        )
    except OSError as error:
        raise UserError(
            f"cannot listen on {settings.host}:{settings.port}: {error.strerror};"
            " choose another --port (0 picks a free one) or --host"
        ) from error
