"""Webhooks over HTTP: each delivery is a signed POST of JSON."""

import asyncio
import re
import ssl
import time
from datetime import UTC, datetime
from importlib.metadata import version

import httpx2

from application.ports.configurations import PinnedConfiguration
from application.ports.webhooks import WebhookAnswer, WebhookError
from domain.configuration.hooks import header_problem, url_problem
from domain.configuration.problems import ConfigurationError
from domain.configuration.secrets import SecretReference
from domain.configuration.webhooks import Webhook, secret_problem, webhook_key
from domain.delivery.webhook import WebhookMessage, requested_pause_seconds, signature_headers
from infrastructure.outbound.configuration.files import RevisionFiles
from infrastructure.outbound.configuration.load import FILE_UNUSABLE
from infrastructure.outbound.guarded_http.address_guard import NameLookups, ResolveHost
from infrastructure.outbound.guarded_http.request import (
    GuardedRequest,
    RequestNotSentError,
    body_prefix,
    new_transport,
    send_guarded,
)

_PLACE = re.compile(r"/spawnlog/announce/webhooks/[0-9]+(?=/)")
"""Place of a webhook in a file.

The secrets of a revision from another server's file are found by place. In this server's file,
another webhook may be at that place.
"""


class HttpWebhooks:
    """Implementation of `WebhookClient`. Addresses, headers and secrets are resolved at each
    delivery.

    It does not limit concurrency; the sender does.

    Args:
        files: Configuration files by revision.
        resolve: DNS lookup. Default: `NameLookups`.
        tls: Trusted certificates. Default: those of the system.
    """

    def __init__(
        self,
        files: RevisionFiles,
        *,
        resolve: ResolveHost | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._files = files
        self._resolve = resolve or NameLookups().resolve
        self._tls = tls
        self._agent = f"spawnlog/{version('spawnlog')}"

    async def send(
        self, pinned: PinnedConfiguration, webhook_id: str, message: WebhookMessage
    ) -> WebhookAnswer:
        """Send a message once, without retries. Errors contain nothing of the request or the
        answer.

        Raises:
            WebhookError: The webhook is not configured, cannot be resolved here, or did not
                answer.
        """
        webhook = pinned.configuration.spawnlog.announce.named(webhook_id)
        if webhook is None:
            raise WebhookError("the webhook is not configured")
        request = self._request(pinned, webhook, message)
        return await self._exchange(request, float(webhook.timeout_seconds))

    async def _exchange(self, request: GuardedRequest, seconds: float) -> WebhookAnswer:
        deadline = asyncio.get_running_loop().time() + seconds
        async with new_transport(self._trusted()) as transport:
            try:
                async with asyncio.timeout_at(deadline):
                    response = await send_guarded(transport, request, self._resolve, "the webhook")
            except TimeoutError:
                raise WebhookError(f"the webhook did not answer in {seconds:g} s") from None
            except RequestNotSentError as why:
                raise WebhookError(str(why)) from None
            except httpx2.TransportError:
                raise WebhookError("the webhook closed the connection") from None
            try:
                await body_prefix(response, deadline)
            finally:
                await response.aclose()
            headers = response.headers
            retry_after = requested_pause_seconds(
                headers.get("Retry-After"), datetime.now(UTC), date=headers.get("Date")
            )
            return WebhookAnswer(response.status_code, retry_after)

    def _request(
        self, pinned: PinnedConfiguration, webhook: Webhook, message: WebhookMessage
    ) -> GuardedRequest:
        file = self._files.file_of(pinned)

        def resolve(value: str | SecretReference) -> str:
            if isinstance(value, SecretReference) and file.missing is not None:
                raise WebhookError(FILE_UNUSABLE, is_for_later=True)
            place = _PLACE.match(value.pointer) if isinstance(value, SecretReference) else None
            if place is not None and file.resolve_secret(f"{place[0]}/id") != webhook.id:
                text = "this server's configuration file has a different webhook in this place"
                raise WebhookError(text, is_for_later=True)
            return file.resolve(value)

        try:
            address = resolve(webhook.url)
            own = {name: resolve(value) for name, value in webhook.headers.items()}
            secrets = [resolve(secret) for secret in webhook.secrets]
        except ConfigurationError as error:
            raise WebhookError(f"the webhook cannot be called: {error}") from None
        complaint = url_problem(address)
        if complaint is not None:
            raise WebhookError(f"the webhook cannot be called: its url {complaint}")
        for secret in secrets:
            problem = secret_problem(secret)
            if problem is not None:
                raise WebhookError(f"the webhook cannot be called: one of its secrets {problem}")
        if any(header_problem(value) is not None for value in own.values()):
            text = "the webhook cannot be called: one of its headers has an invalid value"
            raise WebhookError(text)
        try:
            url = httpx2.URL(address)
        except httpx2.InvalidURL:
            text = "the webhook cannot be called: its url must be a URL"
            raise WebhookError(text) from None
        keys = [webhook_key(secret) for secret in secrets]
        # `Headers` ignores case; later updates override earlier ones.
        headers = httpx2.Headers({"Accept": "*/*"})
        headers.update(own)
        headers.update(signature_headers(keys, message, int(time.time())))
        headers.update(
            {
                "Accept-Encoding": "identity",
                "Connection": "close",
                "Content-Type": "application/json",
                "User-Agent": self._agent,
            }
        )
        return GuardedRequest(
            method="POST", url=url, headers=dict(headers), body=message.body.encode()
        )

    def _trusted(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls
