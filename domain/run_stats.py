"""The last line of an announcement: what a run cost and where its session is."""

import math
from dataclasses import dataclass

from domain.values.text import single_line

PATH_CHARACTERS_MAX = 4096
_KEY_CHARACTERS_MAX = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStats:
    """Numbers of one run. None is unknown; `runtime_ms` milliseconds, cost in US dollars."""

    session_key: str
    runtime_ms: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    estimated_cost_usd: float | None = None
    session_id: str | None = None
    transcript_path: str | None = None


def stats_line(stats: RunStats) -> str:
    """`Stats: runtime 5m12s • tokens 1.5k (in 1.2k / out 340) • est $0.05 • sessionKey …`."""
    items = [f"runtime {duration_text(stats.runtime_ms)}", _tokens(stats)]
    cost = stats.estimated_cost_usd
    if cost is not None and math.isfinite(cost) and cost >= 0:
        items.append(f"est {cost_text(cost)}")
    items.append(f"sessionKey {single_line(stats.session_key, characters_max=_KEY_CHARACTERS_MAX)}")
    if stats.session_id:
        items.append(f"sessionId {single_line(stats.session_id, characters_max=100)}")
    if stats.transcript_path:
        path = single_line(stats.transcript_path, characters_max=PATH_CHARACTERS_MAX)
        items.append(f"transcript {path}")
    return f"Stats: {' • '.join(items)}"


def duration_text(milliseconds: int | None) -> str:
    """`1h5m`, `5m12s` or `42s`; `n/a` for none."""
    if milliseconds is None or milliseconds <= 0:
        return "n/a"
    minutes, seconds = divmod((milliseconds + 500) // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes}m"
    return f"{minutes}m{seconds}s" if minutes else f"{seconds}s"


def token_text(tokens: int) -> str:
    """`340`, `1.5k`, `2.0m`."""
    if tokens < 1000:
        return str(max(0, tokens))
    for unit, name in ((1000, "k"), (1_000_000, "m")):
        tenths = (tokens * 10 + unit // 2) // unit
        if tenths < 10_000 or name == "m":
            break
    return f"{tenths // 10}.{tenths % 10}{name}"


def cost_text(dollars: float) -> str:
    """Two decimals from one cent on, else four."""
    return f"${dollars:.2f}" if dollars >= 0.01 else f"${dollars:.4f}"


def _tokens(stats: RunStats) -> str:
    known = (stats.input_tokens, stats.output_tokens, stats.total_tokens)
    if all(count is None for count in known):
        return "tokens n/a"
    taken, given = stats.input_tokens or 0, stats.output_tokens or 0
    total = taken + given if stats.total_tokens is None else stats.total_tokens
    return f"tokens {token_text(total)} (in {token_text(taken)} / out {token_text(given)})"
