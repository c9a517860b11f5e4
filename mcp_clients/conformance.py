"""The conformance suite of the protocol: each of its scenarios for servers in each version that it
is for, and each for clients in the newest.

The suite describes tools, prompts and resources that its scenarios for servers ask for;
`conformance_server` has them. Its scenarios for clients are servers of tools, which a model of
runtime `model` has: `conformance_client`. What is not offered stands here with its reason, and in
README.md. A check that is listed and holds is as wrong as one that is not listed and does not
hold, and a scenario that nobody said anything about is wrong as well: so the lists stay true when
the suite is raised.
"""

import json
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from build_page import node, node_environment
from tests.support.servers.configurations import agent, command, configuration, scripted
from tests.support.servers.preloaded import ROOT

SUITE = "node_modules/@modelcontextprotocol/conformance/dist/index.js"
SECONDS_MAX = 120
Role = Literal["server", "client"]
ROLES: tuple[Role, ...] = ("server", "client")
EXTENSION = "extension"
"""Stands in place of a version for what is on no version's list."""

OURS = frozenset(
    {
        "caching",
        "dns-rebinding-protection",
        "http-header-validation",
        "resources-list",
        "sep-2164-resource-not-found",
        "server-initialize",
        "server-stateless",
        "server-sse-multiple-streams",
        "tasks-capability-negotiation",
        "tasks-dispatch-and-envelope",
        "tasks-lifecycle",
        "tasks-mrtr-composition",
        "tasks-request-headers",
        "tasks-request-state-removal",
        "tasks-required-task-error",
        "tasks-wire-fields",
        "tools-list",
    }
)
"""The scenarios whose answers come from the product: they show something about it."""

CARRIED = frozenset(
    {
        "completion-complete",
        "input-required-result-basic-elicitation",
        "input-required-result-basic-list-roots",
        "input-required-result-basic-sampling",
        "input-required-result-capability-check",
        "input-required-result-ignore-extra-params",
        "input-required-result-missing-input-response",
        "input-required-result-multi-round",
        "input-required-result-multiple-input-requests",
        "input-required-result-non-tool-request",
        "input-required-result-request-state",
        "input-required-result-result-type",
        "input-required-result-tampered-state",
        "input-required-result-unsupported-methods",
        "input-required-result-validate-input",
        "json-schema-2020-12",
        "ping",
        "prompts-get-embedded-resource",
        "prompts-get-simple",
        "prompts-get-with-args",
        "prompts-get-with-image",
        "prompts-list",
        "resources-read-binary",
        "resources-read-text",
        "resources-templates-read",
        "tools-call-audio",
        "tools-call-embedded-resource",
        "tools-call-error",
        "tools-call-image",
        "tools-call-mixed-content",
        "tools-call-simple-text",
        "tools-call-with-progress",
    }
)
"""The scenarios that are answered by `conformance_server`, or by the SDK alone: they show that the
endpoint carries what the protocol has, to and fro, which the product itself does not all use."""

CLIENT = frozenset(
    {
        "http-custom-headers",
        "http-invalid-tool-headers",
        "http-standard-headers",
        "initialize",
        "json-schema-2020-12-preservation",
        "json-schema-ref-no-deref",
        "request-metadata",
        "sse-retry",
        "tools_call",
    }
)
"""The scenarios of a server of tools, which the runtime `model` calls: they show something about
how it sets its client up."""

NOT_OFFERED: Mapping[str, Sequence[str]] = {
    "A client is asked nothing in the middle of a call: without a session of the protocol its"
    " answer would find nobody.": (
        "elicitation-sep1034-defaults",
        "elicitation-sep1330-enums",
        "tools-call-elicitation",
        "tools-call-sampling",
    ),
    "Nothing is kept between two requests, so no level of a log either.": (
        "logging-set-level",
        "tools-call-with-logging",
    ),
    "Nothing is pushed: a client that wants to hear waits (`subagents_wait`) or asks.": (
        "resources-subscribe",
        "resources-unsubscribe",
        "tasks-status-notifications",
    ),
    "There is no session of the protocol: none is ended, and no stream is taken up again.": (
        "server-session-lifecycle",
        "server-sse-multiple-streams@2025-11-25",
        "server-sse-polling",
    ),
    "A task is a run, and a run asks its requester nothing.": (
        "tasks-mrtr-input",
        "tasks-dispatch-and-envelope:tasks-result-type-complete-on-non-task-responses",
    ),
    "A run that went wrong is a result that is an error; a task never fails otherwise.": (
        "tasks-lifecycle:sep-2663-tasks-get-status-failed",
    ),
    "No tool takes an argument as a header.": ("http-custom-header-server-validation",),
    "A model's servers of tools ask neither it nor its requester for anything.": (
        "elicitation-sep1034-client-defaults",
        "sep-2322-client-request-state",
    ),
    "A server of tools is sent the headers of its configuration; no token is fetched for it.": (
        "auth/",
    ),
    "A model is shown the schema of a tool without `$schema`, as endpoints of models want it.": (
        "json-schema-2020-12-preservation:json-schema-2020-12-client-$schema-preserved",
    ),
    "There are no skills.": (
        "sep-2640-client-no-prefetch",
        "sep-2640-client-verify-digest",
        "sep-2640-client-verify-frontmatter",
        "sep-2640-client-verify-size",
        "sep-2640-skills-directory",
        "sep-2640-skills-enumeration",
        "sep-2640-skills-manifest",
    ),
}
"""Reasons, and the scenarios, or single checks of one, that they are for. A slash at the end stands
for a group of scenarios, of which the first is run."""

SLOW, FAILING, ECHO = "slow", "failing", "echo"
TASKS_SECONDS = (0, 1, 2, 60)
"""How long a `slow_compute` of the suite takes."""

_MATTERS = ("FAILURE", "WARNING")
_WIRE = "wire-schema-"
"""Checks of every scenario, which hold where nothing was said as well."""

_LISTED = re.compile(r"^  - (\S+) \[(\S+)\]$", re.MULTILINE)


def suite_configuration() -> dict[str, Any]:
    """Agents for the tools that make tasks: as long as the suite asks for, one that fails, and one
    that says what it was told."""
    failing = {"id": FAILING, "runtime": {"type": "scripted", "outcome": "error", "error": "wrong"}}
    slow = [
        agent(f"{SLOW}-{seconds}", scripted(steps=[{"afterMs": seconds * 1000}]))
        for seconds in TASKS_SECONDS
    ]
    config = configuration(
        agent(default=True),
        failing,
        agent(ECHO, command("cat")),
        *slow,
        maxChildrenPerAgent=20,
        maxConcurrent=20,
    )
    config["spawnlog"]["noAuth"] = True
    return config


@dataclass(frozen=True)
class Trial:
    """A scenario in a version."""

    scenario: str
    version: str
    role: Role = "server"

    def __str__(self) -> str:
        return f"{self.scenario}@{self.version}"

    @property
    def group(self) -> str | None:
        """Return the group of the scenario, or None."""
        before, slash, _ = self.scenario.partition("/")
        return before + slash if slash else None

    def arguments(self, url: str) -> tuple[str, ...]:
        """Return the arguments for the suite, which starts a client by itself."""
        version = () if self.version == EXTENSION else ("--spec-version", self.version)
        client = f"{shlex.quote(sys.executable)} -m mcp_clients.conformance_client"
        whom = ("--url", url) if self.role == "server" else ("--command", client)
        return (self.role, *whom, "--scenario", self.scenario, *version, "--verbose")

    def reasons(self) -> dict[str, str]:
        """Return the checks that are not offered, each with the reason; `*` means all checks."""
        found = {}
        for reason, entries in NOT_OFFERED.items():
            for entry in entries:
                named, _, version = entry.partition("@")
                scenario, _, check = named.partition(":")
                if scenario in (self.scenario, self.group) and version in ("", self.version):
                    found[check or "*"] = reason
        return found


def trials(build: Path) -> tuple[list[Trial], set[str]]:
    """Return the trials, and the names of all scenarios of the suite. A client chooses its version
    by itself, so that one trial of it is enough."""
    found: list[Trial] = []
    names: set[str] = set()
    for role in ROLES:
        groups: set[str] = set()
        for scenario, listed in _LISTED.findall(_listed(build, role)):
            versions = listed.split(",") if role == "server" else listed.split(",")[-1:]
            several = [Trial(scenario, version, role) for version in versions]
            group = several[0].group
            names.add(group or scenario)
            if group not in groups:
                found += several
            groups |= {group} if group is not None else set()
    return found, names


def _listed(build: Path, role: Role) -> str:
    done = subprocess.run(
        node(SUITE, "list", f"--{role}"),
        cwd=build,
        env=node_environment(),
        check=True,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    return done.stdout


def conformance(build: Path, url: str) -> list[str]:
    """Return the differences between the suite's results and the lists of this module."""
    found, named = trials(build)
    wrong = unlisted(named)
    held = 0
    for trial in found:
        checks = _checks(build, url, trial)
        held += sum(one["status"] == "SUCCESS" for one in checks)
        said = list(differences(trial, checks))
        reasons = sorted(set(trial.reasons().values()))
        print(f"conformance {trial}: {'; '.join(said or reasons) or 'ok'}", flush=True)
        wrong += [f"{trial}: {one}" for one in said]
    print(f"conformance: {len(found)} trials of {len(named)} scenarios, {held} checks hold")
    return wrong


def unlisted(named: Set[str]) -> list[str]:
    """Return the scenarios that are on no list, and the listed ones that the suite lacks."""
    entries = {entry for entries in NOT_OFFERED.values() for entry in entries}
    known = {entry.partition("@")[0].partition(":")[0] for entry in entries}
    known |= OURS | CARRIED | CLIENT
    new = [f"{one}: new in the suite; say what it shows" for one in sorted(named - known)]
    return [*new, *(f"{one}: no longer in the suite" for one in sorted(known - named))]


def differences(trial: Trial, checks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the failed checks that are not listed, and the listed ones that passed."""
    unmet = {
        one["id"]: f"{one['id']}: {one.get('errorMessage') or one['description']}"
        for one in checks
        if one["status"] in _MATTERS
    }
    shown = {
        one["id"]
        for one in checks
        if one["status"] == "SUCCESS" and not one["id"].startswith(_WIRE)
    }
    if not shown and not unmet:
        unmet["*"] = "it shows nothing"
    reasons = trial.reasons()
    if "*" in reasons:
        if not unmet:
            yield f"it is listed as not offered, and holds: {', '.join(sorted(shown))}"
        # What is sent is as the protocol has it all the same.
        yield from (text for check, text in unmet.items() if check.startswith(_WIRE))
        return
    yield from (text for check, text in unmet.items() if check not in reasons)
    yield from (
        f"{one} is listed as not offered, and holds" for one in sorted(reasons.keys() - unmet)
    )


def _checks(build: Path, url: str, trial: Trial) -> list[dict[str, Any]]:
    # Into a file: at its end the suite leaves, and what a pipe has not taken is lost.
    with tempfile.TemporaryFile("w+", encoding="utf-8") as told:
        subprocess.run(
            node(SUITE, *trial.arguments(url)),
            cwd=build,
            env={**node_environment(), "PYTHONPATH": str(ROOT)},
            stdout=told,
            stderr=subprocess.STDOUT,
            timeout=SECONDS_MAX,
            check=False,
        )
        told.seek(0)
        text = told.read()
    start = f"\n{text}".find("\n[\n")
    if start < 0:
        return [{"id": "run", "status": "FAILURE", "description": text[-500:]}]
    checks: list[dict[str, Any]] = json.JSONDecoder().raw_decode(text[start:])[0]
    return checks
