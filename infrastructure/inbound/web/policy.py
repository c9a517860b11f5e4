"""The content policy of the page: it loads files of its own server, and speaks to that alone.

What models, scripts and callers wrote is shown on it. Should any of that ever become markup, it can
run nothing, load nothing and send nothing.
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
        # The frame of the page makes its own templates with it, and passes no text of others.
        "trusted-types svelte-trusted-html",
    )
)
DOCUMENT_HEADERS: Mapping[str, str] = {
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
