"""Commands of the command line as plain data, attached to operations.

The generator of the command-line description reads them together with the operation's models.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from domain.values.moments import MOMENT_FORMS

Meaning = Literal[
    "run", "requester", "duration", "moment", "files", "objects", "events", "stdin", "runs"
]
COMMAND_ITEMS_MAX = 10_000
"""Maximum number of items in a list on the command line, read in as many pages as needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """Presentation of a parameter or body member on the command line, where it is not the default.

    Attributes:
        flag: Replaces `--` plus the name in kebab case.
        metavar: Placeholder of the value in the help; for an argument, its name.
        help: Replaces the description.
        default: The value that is sent if none is given.
        means: How the value is read: `run` is the name of a run; `requester` a session or `me`;
            `duration` is converted to seconds; `moment` may be a time of the terminal's zone;
            `files` are attached; `objects` are JSON objects, files of them, or `-` for standard
            input; `events` are event types; `stdin` is a text, or `-` for standard input;
            `runs` are names of runs, or JSON objects.
        offers: Accepted values, if they differ from those of the model.
        minimum: Replaces the minimum of the model; `maximum` likewise.
        variable: Environment variable that supplies the default.
    """

    flag: str | None = None
    metavar: str | None = None
    help: str | None = None
    default: Any = None
    means: Meaning | None = None
    offers: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    variable: str | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, or a line of a single answer.

    Attributes:
        header: The heading above or beside the value.
        path: Members of an item, as in `event.type`; with `|`, the first one that has a value, as
            in `taskPreview|task`. Empty for the whole item.
        form: How the value is written: a name in the command line's table of forms.
        empty: The text shown if there is no value.
        marked: A member whose name is appended in parentheses if it is true.
        if_any: True to omit the column if no item has a value.
        narrow: The form for a narrow terminal. The remaining attributes are those of `TableColumn`.
    """

    header: str
    path: str = ""
    form: str | None = None
    empty: str | None = None
    marked: str | None = None
    if_any: bool = False
    narrow: str | None = None
    coloured: bool = False
    right: bool = False
    elastic: bool = False
    folds: bool = False
    optional: bool = False
    cells_min: int | None = None


@dataclass(frozen=True, slots=True)
class Command:
    """The command of an operation.

    Attributes:
        words: The words that the user types. None if only functions use the options.
        help: What the command does: one sentence, then an empty line and details.
        arguments: Parameters given by position, after those of the path.
        options: Overrides of the defaults, by parameter or member name; nested members are named as
            in `requester.channel`. None removes the option.
        by_hand: True if a function implements the command and takes the options of this
            description.
        columns: Columns of the table of items.
        items: The member of the answer that holds the items. It is paged if its name is `items`.
        fields: Lines of a single answer. Without `fields` and `done`, the answer is printed as
            YAML.
        done: A sentence printed instead of a table, filled from the answer and the request.
        notes: Sentences for a person, by the member that must have a value.
        differs: The command exits with 1 unless this member is true.
        limit: Default maximum number of items.
        numbered: True to show each item's place in the whole list.
    """

    words: str | None
    help: str = ""
    arguments: tuple[str, ...] = ()
    options: Mapping[str, Option | None] = field(default_factory=dict)
    by_hand: bool = False
    columns: tuple[Column, ...] = ()
    items: str | None = None
    fields: tuple[Column, ...] = ()
    done: str | None = None
    notes: Mapping[str, str] = field(default_factory=dict)
    differs: str | None = None
    limit: int = 50
    numbered: bool = False


_TIME = "TIME"
USUAL: Mapping[str, Option | None] = {
    "agentId": Option(flag="--agent", metavar="ID"),
    "actor": Option(metavar="ACTOR"),
    "after": Option(metavar="POSITION", help="Only items after this position."),
    "at": Option(metavar=_TIME, means="moment", help=f"State as of this moment: {MOMENT_FORMS}."),
    "before": Option(metavar="POSITION"),
    "cause": Option(
        metavar="CAUSE",
        help=(
            "Only runs that failed, timed out or have an unknown outcome with this cause, as"
            " `summary` shows it, or with this last line of an error."
        ),
    ),
    "cursor": Option(
        metavar="CURSOR",
        help="Continue from this cursor, printed as the last line of a longer list.",
    ),
    "endedSince": Option(metavar=_TIME, means="moment"),
    "endedUntil": Option(metavar=_TIME, means="moment"),
    "from": Option(metavar=_TIME, means="moment"),
    "limit": Option(help="Maximum number of items.", minimum=1, maximum=COMMAND_ITEMS_MAX),
    "q": Option(flag="--words", metavar="TEXT"),
    "requester": Option(metavar="KEY", means="requester"),
    "respawnedFrom": Option(metavar="NAME", means="run", help="Only respawns of this run."),
    "outcome": Option(metavar="OUTCOME"),
    "rule": Option(metavar="RULE"),
    "runId": Option(flag="--run", metavar="NAME", means="run", help="Only this run."),
    "session": Option(metavar="KEY"),
    "since": Option(metavar=_TIME, means="moment"),
    "stage": Option(metavar="STAGE"),
    "status": Option(metavar="STATUS"),
    "to": Option(metavar=_TIME, means="moment"),
    "tree": Option(metavar="KEY", help="Only the tree below this root session."),
    "types": Option(
        flag="--type",
        metavar="TYPE",
        means="events",
        help=("Only events of this type; may be repeated."),
    ),
    "until": Option(metavar=_TIME, means="moment"),
    # The command line reads all pages and prints the result, so it has no use for these.
    **dict.fromkeys(("minPosition", "order", "totals", "wait")),
}
"""Default options by parameter name, unless an operation overrides them."""

PATHS: Mapping[str, Option] = {
    "runId": Option(
        metavar="NAME",
        means="run",
        help=(
            "Full run id, its first characters (4 or more, if unique), label, LABEL@last"
            " (newest run with it), '#2' (second of `run list`), last, or child key."
        ),
    ),
    "key": Option(metavar="SESSION", help="Session key or session id."),
    "id": Option(metavar="ID", help="Id of the announcement."),
    "revision": Option(metavar="REVISION", help="Number of the revision.", minimum=1),
}
"""Arguments for path parameters."""
