"""Invalid arguments: exit status 2, a text with the reason, and no request."""

import shlex

import pytest

from tests.support.builders.api_runs import FIRST
from tests.support.servers.command_line import Command
from tests.support.servers.recorded_api import RecordedApi

SET = "--set /agents/defaults/subagents/maxSpawnDepth=1"
RESPAWN = f"run respawn {FIRST}"
NOWHERE = "http://127.0.0.1:1"
REFUSED: list[tuple[str, str]] = [
    # Words, and options of other commands.
    ("get x", "'run get' or"),
    ("list", "'run list' or"),
    ("ps", "'run list' or"),
    ("versoin", "'version'"),
    ("run ls", "'list'"),
    ("run kill x", "'stop'"),
    ("spwan", "'spawn'"),
    ("run list --json", "--output json"),
    ("run list --yaml", "--output yaml"),
    ("--json run list", "--output json"),
    ("run list -n 3", "--limit"),
    ("event list --folow", "--follow"),
    ("spawn -f x", "--file"),
    ("diff pos:1 pos:2 --sesion main", "--session"),
    (f"--url {NOWHERE} version", "version' does not take --url"),
    ("-o json --data-dir=x version", "version' does not take --data-dir"),
    ("-ojson migrate", "migrate' does not take -o"),
    ("--output --url --url x version", "version' does not take --url"),
    ("-o json run list --output yaml", "--output is given twice: give it once"),
    # Values.
    ("run list --limit abc", "Invalid value for '--limit': must be a whole number"),
    ("run list --depth 99", "Invalid value for '--depth': must be at most 64"),
    ("run list -o xml", "Invalid value for '--output' / '-o': 'xml' is not one of"),
    ("session get ..", ""),
    ("session get .", ""),
    ("session get ''", ""),
    ("announcement ack agent:main:main ..", ""),
    ("run list --url http://me:secret@127.0.0.1:1", ""),
    (f"run log {FIRST} --limit 501", "give --after 0 to begin with the first ones"),
    (f"run log {FIRST} --follow --limit 501", "the last entries are 500 at most"),
    # Spawns.
    ("spawn", "give TASK"),
    ("spawn --parallel", "give TASK"),
    ("spawn --task 'low water'", "--parallel"),
    ("spawn - --parallel --task -", "standard input"),
    ("spawn x --timeout -10m", ""),
    ("spawn x --timeout 0.5s", ""),
    ("spawn x --timeout ten", ""),
    *(
        (f"{words} --idempotency-key {key}", "")
        for words in ("spawn x", f"run send {FIRST} x", RESPAWN)
        for key in ("''", "x" * 256, "'a\nb'", "ä")
    ),
    ("spawn x --shared goal=a", "error: --shared is not JSON"),
    ("""spawn x --shared '{"a": {"b": 1, "b": 2}}'""", "the JSON has the key /a/b twice"),
    ("""spawn x --shared '{"a": NaN}'""", "error: --shared is not JSON"),
    (f"spawn x --shared {'[' * 100_000}", "error: --shared is not JSON"),
    ("""spawn x --shared '["a"]'""", "error: --shared is not a JSON object, such as"),
    ("spawn x --shared ''", "error: --shared is empty: it must be a JSON object, such as"),
    *((f"{RESPAWN} --set {text}", "--set") for text in ("label", "label=two", "=1", "'la bel=1'")),
    *((f"{RESPAWN} --set {text}", "--set") for text in ("a.b.c=1", "x=NaN")),
    # Lists, streams and searches.
    ("event list --follow --newest", "--follow runs forward"),
    ("event list --follow --before 7", "--follow runs forward"),
    ("event list --follow --at -5m", "--follow runs forward"),
    ("event list --follow --limit 50", "--follow runs until Ctrl-C"),
    ("event list --follow --output json", "jsonl"),
    ("event find", "--when CONDITION, --field NAME, --type TYPE or --rule RULE"),
    ("event find --field outcome", "--becomes VALUE, or --changes"),
    ("event find --type A,B", ""),
    ("event find --when x --last --limit 2", ""),
    ("event histogram --by weight", ""),
    ("event histogram --buckets 501", ""),
    (f"run log {FIRST} -f --at 1h", ""),
    (f"run log {FIRST} -f -o json", ""),
    (f"run log {FIRST} -f --after 1 --limit 200", ""),
    ("announcement list --parked --state due", ""),
    ("announcement list main --parked", ""),
    ("announcement list main --state due", ""),
    ("config show file.json5 --at pos:12", "leave FILE out"),
    # What-if.
    ("what-if", ""),
    (f"what-if {SET} --config x.json5", ""),
    ("what-if --set nothing", ""),
    ("what-if --set /model=large", ""),
    ("what-if --config /not/there", ""),
    (f"what-if {SET} --fail-on same", ""),
    (f"what-if {SET} --output html", ""),
]


@pytest.mark.parametrize(("words", "text"), REFUSED, ids=[item[0][:60] for item in REFUSED])
def test_unusable_arguments_are_refused(
    words: str, text: str, spawnlog: Command, api: RecordedApi
) -> None:
    result = spawnlog(*shlex.split(words))
    assert (result.exit_code, api.asked) == (2, [])
    assert text in result.stderr
    assert result.stderr.strip()
    assert "secret" not in result.output
