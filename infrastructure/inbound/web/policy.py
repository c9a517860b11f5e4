"""Content security policy of the page: only files and requests of its own server.

The page shows text from models, scripts and callers. If any of it became markup, it could run
nothing, load nothing and send nothing.
"""

from collections.abc import Mapping

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        # The page's framework creates its own templates with it, and passes no foreign text.
        "trusted-types svelte-trusted-html",
    )
)
DOCUMENT_HEADERS: Mapping[str, str] = {
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
