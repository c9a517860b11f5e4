"""Commands of the command line, as the rows of operations describe them: plain data.

The generator of the command line's description reads it, together with the models of a row.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from domain.values.moments import MOMENT_FORMS

Meaning = Literal["run", "requester", "duration", "files", "objects", "events", "stdin"]
COMMAND_ITEMS_MAX = 10_000
"""How many items a list of the command line has at most, in as many pages as that takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """What the command line makes of a parameter, or of a member of a body, if not the usual.

    Attributes:
        flag: In place of `--` and the name in kebab case.
        metavar: The word for the value in the help; for an argument its name.
        help: In place of the description.
        default: The value that is sent if none is given.
        means: How the value is read: `run` is the name of a run, `requester` a session or `me`,
            `duration` becomes seconds, `files` are attached, `objects` are JSON objects or files of
            them, `events` are types of events, `stdin` is a text, or `-` for standard input.
        offers: Values that the option takes, if not all, or none, of those of the model.
        minimum: In place of the minimum of the model; `maximum` likewise.
        variable: The environment variable that has the default.
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
        header: What stands above, or beside.
        path: Members of an item, as in `event.type`; the first of several with a value, as in
            `taskPreview|task`. Empty for the whole item.
        form: How the value is written: a name in the command line's table of forms.
        empty: The text in place of no value.
        marked: A member; if it is true, its name is added in parentheses.
        if_any: True if the column is left out when no item has a value.
        narrow: The form for a narrow terminal. The other traits are those of `TableColumn`.
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
        words: As they are typed. None if the operation has options for functions only.
        help: What the command does: a sentence, and then, after an empty line, more.
        arguments: Parameters that are given by their place, after those of the path.
        options: What differs from the usual, by the name of the parameter or member; a member of a
            member is named as in `requester.channel`. None if there is no option.
        by_hand: True if a function runs it, which takes the options of this description.
        columns: Of the table of items.
        items: The member of the answer that has the items; they are its pages if it is `items`.
        fields: Of a single answer. Without fields and `done` it is printed as YAML.
        done: The sentence in place of a table, with members of the answer and of the request.
        notes: Sentences for a person, by the member that must have a value.
        differs: The member by which the command exits with 1 unless it is true.
        limit: How many items there are at most if none is given.
        numbered: True if each item of the whole list is shown with its place.
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
    "after": Option(metavar="POSITION", help="Only after this position."),
    "at": Option(metavar=_TIME, help=f"As it was then: {MOMENT_FORMS}."),
    "before": Option(metavar="POSITION"),
    "cursor": Option(help="Go on from here: the last line of a list that has more names it."),
    "from": Option(metavar=_TIME),
    "limit": Option(help="How many at most.", minimum=1, maximum=COMMAND_ITEMS_MAX),
    "q": Option(flag="--words", metavar="TEXT"),
    "requester": Option(metavar="KEY", means="requester"),
    "respawnedFrom": Option(metavar="NAME", means="run", help="Respawned from this run."),
    "rule": Option(metavar="RULE"),
    "runId": Option(flag="--run", metavar="NAME", means="run", help="Only of this run."),
    "session": Option(metavar="KEY"),
    "since": Option(metavar=_TIME),
    "to": Option(metavar=_TIME),
    "tree": Option(metavar="KEY", help="Only the tree of this root session."),
    "types": Option(
        flag="--type", metavar="TYPE", means="events", help="Only such events; may be repeated."
    ),
    "until": Option(metavar=_TIME),
    # The command line reads all pages, and prints what there is.
    **dict.fromkeys(("minPosition", "order", "totals", "wait")),
}
"""What parameters of these names are to the command line, unless a row says otherwise."""

PATHS: Mapping[str, Option] = {
    "runId": Option(
        metavar="NAME",
        means="run",
        help="Full id, unique beginning of one (4 or more), label, LABEL@last (its newest run), "
        "'#2' (second of `run list`), last, or child key.",
    ),
    "key": Option(metavar="SESSION", help="Session key or session id."),
    "id": Option(metavar="ID", help="Id of the announcement."),
    "revision": Option(metavar="REVISION", help="A revision, by its number.", minimum=1),
}
"""What the parameters of paths are to the command line."""
