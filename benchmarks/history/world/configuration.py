"""Configurations under which a generated history is decided."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from application.ports.configurations import PinnedConfiguration
from infrastructure.outbound.configuration.load import (
    LoadedConfiguration,
    load_document,
    read_text,
)

AGENTS = ("main", "planner", "researcher", "coder", "summarizer", "clerk", "reviewer")
ALLOWED = ("main", "planner", "researcher", "coder", "summarizer", "steward", "archivist")
WIDTHS = (64, 80, 72)
"""Lane widths per depth; revisions take them in turn."""

ARCHIVE_AFTER_MINUTES = 15
MODEL = "example/large"
CHANNEL = "chat"
GATEWAY = "gateway"
"""Id of the webhook, and address in the channel of the requesters that it serves."""

EFFECT_ATTEMPTS_MAX = 3
EFFECT_RETRY_SECONDS_MAX = 300
HOOKS = ("subagentSpawning", "subagentEnded")
_OUTSIDE = "https://gateway.example"
_RETRIES = {"attemptsMax": EFFECT_ATTEMPTS_MAX, "retrySecondsMax": EFFECT_RETRY_SECONDS_MAX}
_SIGNED = "whsec_" + "c3Bhd25sb2c" * 4


def _script(name: str, priority: int, *, position: str) -> dict[str, Any]:
    return {
        "id": name,
        "uri": f"scripts/{name}.sh",
        "position": position,
        "priority": priority,
        "returnKey": "message",
        "agentIdOverrideKey": "agentId",
    }


def _own_section() -> dict[str, Any]:
    gateway = {
        "id": GATEWAY,
        "url": f"{_OUTSIDE}/announcements",
        "secrets": [_SIGNED],
        "origin": {"channel": CHANNEL, "to": GATEWAY},
    }
    return {
        "hooks": {**{name: {"url": f"{_OUTSIDE}/{name}"} for name in HOOKS}, **_RETRIES},
        "announce": {"webhooks": [gateway], **_RETRIES},
    }


def _values(width: int) -> dict[str, Any]:
    scripted = {"type": "scripted", "result": "done"}
    agents: list[dict[str, Any]] = [{"id": name, "runtime": scripted} for name in AGENTS]
    by_id = {agent["id"]: agent for agent in agents}
    for name in ("main", "coder", "summarizer"):
        by_id[name]["subagents"] = {"contextScripts": {"ignore": ["identity"]}}
    by_id["clerk"]["subagents"] = {"requireAgentId": True}
    by_id["researcher"]["subagents"] = {
        "model": "example/small",
        "contextScripts": {"run": [_script("sources", 50, position="append")]},
    }
    return {
        "agents": {
            "defaults": {
                "model": MODEL,
                "subagents": {
                    "allowAgents": list(ALLOWED),
                    "maxSpawnDepth": 3,
                    "maxChildrenPerAgent": 5,
                    "maxConcurrent": width,
                    "archiveAfterMinutes": ARCHIVE_AFTER_MINUTES,
                    "runTimeoutSeconds": 300,
                    "contextScripts": {"run": [_script("identity", 100, position="prepend")]},
                },
            },
            "list": agents,
        },
        "session": {"threadBindings": {"defaultSpawnContext": "isolated"}},
        "tools": {"sessions_spawn": {"attachments": {"enabled": True}}},
        "spawnlog": _own_section(),
        "models": {
            "providers": {
                "example": {
                    "models": [
                        {"id": "large", "cost": {"input": 3, "output": 15}},
                        {"id": "small", "cost": {"input": 0.25, "output": 1.25}},
                    ]
                }
            }
        },
    }


def loaded_configuration(values: object, source: str) -> LoadedConfiguration:
    """Return a configuration that is in no file."""
    return load_document(read_text(json.dumps(values), source), source, Path.cwd())


def revision(number: int) -> tuple[LoadedConfiguration, PinnedConfiguration]:
    """Return the configuration of a revision, counted from 1."""
    loaded = loaded_configuration(_values(WIDTHS[(number - 1) % len(WIDTHS)]), "generated")
    loaded = replace(loaded, path=Path("generated.json5"))
    return loaded, PinnedConfiguration(number, loaded.configuration, loaded.stored)
