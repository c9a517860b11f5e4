"""Why something failed, as a server tells it beside an event to those who may read texts."""

from collections.abc import Mapping


def failure_reasons(texts: object) -> str:
    """What follows the facts of the event: one reason, or one for each script; empty without."""
    if not isinstance(texts, Mapping):
        return ""
    error, errors = texts.get("error"), texts.get("errors")
    told = f": {error}" if error else ""
    if isinstance(errors, Mapping):
        told += "".join(f"; {name}: {why}" for name, why in errors.items() if why)
    return told
