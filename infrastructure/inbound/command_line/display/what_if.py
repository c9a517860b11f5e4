"""Output of `spawnlog what-if`: the number of decisions per verdict, and the first of each."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree

from infrastructure.inbound.command_line.display.output import JsonObject, print_table
from infrastructure.inbound.command_line.display.plain_text import printable_line, text_of
from infrastructure.inbound.command_line.display.tables import TableColumn, value_of

SHOWN_MAX = 10
"""Number of decisions printed per verdict."""
ID_CHARACTERS = 8
WHY_CHARACTERS_MAX = 300


@dataclass(slots=True)
class WhatIfReport:
    """The first decisions of each verdict, and the totals, which come last.

    `failing` are the verdicts that fail a build.
    """

    failing: frozenset[str]
    totals: JsonObject | None = None
    first: dict[str, list[JsonObject]] = field(default_factory=dict)

    def take(self, verdict: JsonObject) -> None:
        """Add a verdict."""
        decisions = self.first.setdefault(str(verdict.get("verdict")), [])
        if len(decisions) < SHOWN_MAX:
            decisions.append(verdict)

    @property
    def counts(self) -> Mapping[str, int]:
        """Return the number of decisions per verdict."""
        return dict((self.totals or {}).get("byVerdict", {}))

    @property
    def failed(self) -> bool:
        """Return True if a decision has a verdict that fails a build."""
        return any(self.counts.get(verdict, 0) for verdict in self.failing)


def print_report(report: WhatIfReport) -> None:
    """Print the report as tables for a person."""
    assert report.totals is not None
    totals = report.totals
    print(
        f"{totals['decisions']:,} decision{'s' * (totals['decisions'] != 1)} from position"
        f" {totals['fromPosition']:,} to {totals['toPosition']:,}"
    )
    names = [name for name, count in report.counts.items() if count]
    if not names:
        return
    print()
    _print_counts("VERDICT", {name: {"decisions": report.counts[name]} for name in names})
    for title, key in (("AGENT", "byAgent"), ("RULE", "byRule")):
        if totals[key]:
            print()
            _print_counts(title, totals[key])
    for name in names:
        if report.first.get(name):
            print()
            _print_first(name, report)


def _print_counts(title: str, rows: Mapping[str, Mapping[str, int]]) -> None:
    names = list(dict.fromkeys(name for counts in rows.values() for name in counts))
    columns = [TableColumn(title, value_of("name"))]
    columns += [TableColumn(name.upper(), value_of(name), right=True) for name in names]
    print_table([{"name": name, **counts} for name, counts in rows.items()], columns)


def _print_first(name: str, report: WhatIfReport) -> None:
    shown, count = report.first[name], report.counts[name]
    of = f", the first {len(shown)}" if count > len(shown) else ""
    print(f"{name}: {count:,}{of}")
    columns = (
        TableColumn("RUN", lambda verdict: str(verdict.get("runId"))[:ID_CHARACTERS]),
        TableColumn("POSITION", value_of("position"), right=True),
        TableColumn("LABEL", value_of("label"), elastic=True),
        TableColumn("AGENT", value_of("agentId")),
        TableColumn("WHY", reason_of, folds=True),
    )
    print_table(shown, columns)


def reason_of(verdict: Mapping[str, Any]) -> str:
    """Return the reason of a verdict on one line."""
    if verdict.get("missing"):
        return printable_line("not recorded: " + "; ".join(verdict["missing"]), WHY_CHARACTERS_MAX)
    parts = []
    rule, difference = verdict.get("rule"), verdict.get("difference") or {}
    if rule:
        parts.append(f"{rule}: {verdict['text']}" if verdict.get("text") else f"{rule} had refused")
    elif verdict.get("text"):
        parts.append(str(verdict["text"]))
    elif difference:
        then, now = (text_of(difference.get(side)) for side in ("recorded", "decided"))
        parts.append(f"{difference.get('field')}: {then} -> {now}")
    if verdict.get("assumed"):
        parts.append("assumed: " + "; ".join(verdict["assumed"]))
    return printable_line(". ".join(parts), WHY_CHARACTERS_MAX)


def print_junit(report: WhatIfReport) -> None:
    """Print a JUnit test suite with a case per verdict.

    The verdicts that fail a build are failures, with the first of their decisions.
    """
    counts = report.counts
    failed = [name for name in counts if name in report.failing and counts[name]]
    suite = ElementTree.Element(
        "testsuite",
        name="spawnlog what-if",
        tests=str(len(counts)),
        failures=str(len(failed)),
        errors="0",
        skipped="0",
    )
    for name, count in counts.items():
        case = ElementTree.SubElement(suite, "testcase", classname="what-if", name=name)
        lines = [_in_xml(_line(verdict)) for verdict in report.first.get(name, ())]
        if name in failed:
            failure = ElementTree.SubElement(case, "failure", message=f"{count} {name}")
            failure.text = "\n".join(lines)
        elif count:
            ElementTree.SubElement(case, "system-out").text = "\n".join([f"{count}", *lines])
    ElementTree.indent(suite)
    print('<?xml version="1.0" encoding="UTF-8"?>')
    print(ElementTree.tostring(suite, encoding="unicode"))


def _in_xml(text: str) -> str:
    """Escape the two noncharacters that XML does not allow."""
    return text.replace("\ufffe", "\\ufffe").replace("\uffff", "\\uffff")


def _line(verdict: Mapping[str, Any]) -> str:
    label = printable_line(verdict.get("label") or "", 80)
    agent = printable_line(verdict.get("agentId") or "")
    return f"{verdict.get('runId')} {label} {agent} {reason_of(verdict)}".replace("  ", " ")
