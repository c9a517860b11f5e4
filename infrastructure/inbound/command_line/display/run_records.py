"""Records of a run in a terminal: its events, prompt and explanation."""

from infrastructure.inbound.command_line.display.event_line import event_facts
from infrastructure.inbound.command_line.display.failures import in_words_of_commands
from infrastructure.inbound.command_line.display.output import (
    JsonObject,
    Listing,
    print_block,
    print_listing,
    print_note,
    print_table,
)
from infrastructure.inbound.command_line.display.output_form import Output
from infrastructure.inbound.command_line.display.plain_text import printable_line
from infrastructure.inbound.command_line.display.tables import TableColumn, value_of
from infrastructure.inbound.command_line.display.times import format_instant, format_offset

_HEADINGS = {"systemPrompt": "system prompt", "message": "message"}
_PART_COLUMNS = (
    TableColumn("OF", value_of("of")),
    TableColumn("SOURCE", value_of("source")),
    TableColumn("START", value_of("start"), right=True),
    TableColumn("END", value_of("end"), right=True),
    TableColumn("HASH", lambda part: part.get("sha256") or part.get("hmac")),
)


def print_run_events(listing: Listing) -> None:
    """Print the events of a run."""
    if listing.items:
        first = listing.items[0]
        run_id = printable_line(str(first.get("stream")).removeprefix("run:"))
        print_note(f"run {run_id}, from {format_instant(first.get('recordedAt'))} UTC")
    print_listing(listing, event_columns(listing), Output.TABLE)


def event_columns(listing: Listing) -> tuple[TableColumn, ...]:
    """Return the columns of a run's events.

    Times are also shown relative to the first event, and without the date if all are of one day.
    """
    times = [event.get("recordedAt") for event in listing.items]
    start = times[0] if times else None
    date = (
        "" if len({format_instant(time)[:10] for time in times}) > 1 else format_instant(start)[:11]
    )
    return (
        TableColumn("POSITION", value_of("position"), right=True),
        TableColumn(
            "TIME", lambda event: format_instant(event.get("recordedAt")).removeprefix(date)
        ),
        TableColumn(
            "AFTER", lambda event: format_offset(start, event.get("recordedAt")), right=True
        ),
        TableColumn("EVENT", value_of("type")),
        TableColumn("FACTS", event_facts, folds=True),
    )


def print_prompt(prompt: JsonObject) -> None:
    """Print the texts of a prompt, and the source of each part."""
    for key, heading in _HEADINGS.items():
        text = str(prompt.get(key) or "")
        print(f"=== {heading} ({len(text.encode('utf-8', 'replace'))} bytes) ===")
        print_block(text)
        print()
    print("=== parts ===")
    print_table(prompt.get("parts") or [], _PART_COLUMNS)


_RULE_COLUMNS = (
    TableColumn("RULE", value_of("rule")),
    TableColumn("RESULT", lambda rule: str(rule.get("result")).replace("_", " "), coloured=True),
    TableColumn("WHAT", lambda rule: in_words_of_commands(str(rule.get("text") or "")), folds=True),
)


def print_explanation(explanation: JsonObject) -> None:
    """Print the rules of a decision with their inputs, and the refusal if there is one."""
    names = ("runId", "stage", "configRevision")
    run_id, stage, revision = (printable_line(explanation.get(name)) for name in names)
    print_note(f"run {run_id}, {stage}, under configuration revision {revision}")
    refused = explanation.get("refused")
    if isinstance(refused, dict):
        rule, status = printable_line(refused.get("rule")), printable_line(refused.get("status"))
        print(f"refused by rule {rule} ({status}):")
        print_block(in_words_of_commands(str(refused.get("text") or "")))
        print()
    decisions = explanation.get("decisions") or []
    judged = [rule for rule in decisions if rule.get("result") != "not_judged"]
    print_table(judged, _RULE_COLUMNS)
    if len(judged) < len(decisions):
        left = len(decisions) - len(judged)
        were = "rule was" if left == 1 else "rules were"
        print_note(f"{left} {were} not reached (--output json lists all)")
